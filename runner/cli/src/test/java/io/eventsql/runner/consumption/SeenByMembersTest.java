package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.consumption.AppRun.AppRunner;
import io.eventsql.runner.consumption.AppRun.Detail;
import io.eventsql.runner.consumption.AppRun.SeenEvents;
import io.eventsql.runner.measure.Histograms;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class SeenByMembersTest {
    private static final String RUN = "ab12cd34";

    @Test
    void unite_disjointNumbers_addUp() {
        SeenByMembers united = SeenByMembers.unite(
                RUN,
                3,
                List.of(
                        app(runner(0, seen(100, List.of("0/1", "0/2"), 0, 2))),
                        app(runner(0, seen(50, List.of("0/3"), 1, 3, 4)), runner(1, seen(70, List.of("0/3"), 0)))));

        assertThat(united.members()).isEqualTo(3);
        assertThat(united.partitionsOfSeveral()).isZero();
        assertThat(united.run().runners()).extracting(AppRunner::runner).containsExactly(0, 1);
        SeenEvents first = united.run().of(0).measured();
        assertThat(first.received()).isEqualTo(5);
        assertThat(first.distinct()).isEqualTo(5);
        assertThat(first.duplicates()).isZero();
        assertThat(first.highestNumber()).isEqualTo(4);
        assertThat(first.firstHandledAtMicros()).isEqualTo(50);
        assertThat(first.lastHandledAtMicros()).isEqualTo(1_100);
        Histogram latencies = Histograms.decode(first.endToEndMicrosHistogram());
        assertThat(latencies.getTotalCount()).isEqualTo(5);
        assertThat(latencies.getMinValue()).isEqualTo(50);
        assertThat(latencies.getMaxValue()).isEqualTo(100);
        Map<Long, Histogram> seconds = united.seconds().endToEndMicros();
        assertThat(seconds).containsOnlyKeys(0L, 1L);
        assertThat(seconds.get(0L).getTotalCount()).isEqualTo(3);
        assertThat(seconds.get(1L).getTotalCount()).isEqualTo(3);
        assertThat(united.run().of(1).measured().distinct()).isEqualTo(1);
        assertThat(united.run().of(0).warmup()).isEqualTo(SeenEvents.NONE);
    }

    @Test
    void unite_lostAndSeenByTwo_doNotCancelEachOther() {
        // Of 0 to 4, number 3 is missing and number 1 came to both: five were received.
        SeenEvents united = SeenByMembers.unite(
                        RUN,
                        2,
                        List.of(
                                app(runner(0, seen(1, List.of("0/1"), 0, 1))),
                                app(runner(0, seen(1, List.of("0/2"), 1, 2, 4)))))
                .run()
                .of(0)
                .measured();

        assertThat(united.received()).isEqualTo(5);
        assertThat(united.distinct()).isEqualTo(4);
        assertThat(united.duplicates()).isEqualTo(1);
    }

    @Test
    void unite_partitionThatMoved_isCounted() {
        SeenByMembers united = SeenByMembers.unite(
                RUN,
                2,
                List.of(
                        app(runner(0, seen(1, List.of("0/1", "0/2"), 0)), runner(1, seen(1, List.of("0/1"), 0))),
                        app(runner(1, seen(1, List.of("0/2", "1/1"), 1)))));

        assertThat(united.partitionsOfSeveral()).isEqualTo(1);
    }

    @Test
    void unite_nobodyHasSeenAnything_isNothing() {
        SeenByMembers united = SeenByMembers.unite(RUN, 2, List.of());

        assertThat(united.run().runners()).isEmpty();
        assertThat(united.members()).isEqualTo(2);
    }

    @Test
    void unite_withoutOrWithWrongNumbers_isRefused() {
        SeenEvents whole = seen(1, List.of("0/1"), 0, 1);

        assertThatThrownBy(() -> unite(new SeenEvents(2, 2, 0, 1, 0, 0, 1, 1, whole.endToEndMicrosHistogram(), null)))
                .hasMessage("an app does not tell which numbers it has seen");
        assertThatThrownBy(() ->
                        unite(new SeenEvents(3, 3, 0, 1, 0, 0, 1, 1, whole.endToEndMicrosHistogram(), whole.detail())))
                .hasMessage("an app has seen 3 numbers, but tells 2");
    }

    private static void unite(SeenEvents seen) {
        SeenByMembers.unite(RUN, 2, List.of(app(runner(0, seen))));
    }

    private static AppRun app(AppRunner... runners) {
        return new AppRun(RUN, "app", List.of(runners));
    }

    private static AppRunner runner(int number, SeenEvents measured) {
        return new AppRunner(number, measured, SeenEvents.NONE);
    }

    /**
     * @param micros the latency, and when the first was handled; the last was a millisecond later
     * @param numbers the first is also the second in which all were handled
     */
    private static SeenEvents seen(long micros, List<String> partitions, long... numbers) {
        NumberSet set = new NumberSet();
        Arrays.stream(numbers).forEach(set::add);
        Histogram latencies = Histograms.create();
        latencies.recordValueWithCount(micros, numbers.length);
        long second = numbers[0];
        return new SeenEvents(
                numbers.length,
                set.size(),
                numbers.length - set.size(),
                Arrays.stream(numbers).max().orElse(-1),
                0,
                0,
                micros,
                micros + 1_000,
                Histograms.encode(latencies),
                new Detail(set.encode(), partitions, Map.of(second, Histograms.encode(latencies))));
    }
}
