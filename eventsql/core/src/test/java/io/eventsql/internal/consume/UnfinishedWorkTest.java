package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerListener.Reason;
import java.util.List;
import org.junit.jupiter.api.Test;

class UnfinishedWorkTest {
    private final ShardMember member = Fixtures.member(new Listeners(List.of()), 0, 1, 2);

    private static void run(Assignment assignment) {
        assignment.acceptPage(Fixtures.page(0, 2));
        HandlerClock clock = new HandlerClock();
        clock.start();
        assignment.addClock(clock);
    }

    @Test
    void of_idleMember_isEmpty() {
        assertThat(UnfinishedWork.of(member).partitions()).isEmpty();
    }

    @Test
    void of_handlersAndHandledOffsets_namesThemAndWhatIsRepeated() {
        run(member.assignment(0).orElseThrow());
        member.assignment(1).orElseThrow().recordHandled(0, 7);
        member.assignment(1).orElseThrow().recordHandled(9, 11); // ahead, as with parallel keys
        assertThat(UnfinishedWork.of(member).partitions())
                .satisfiesExactly(
                        running -> assertThat(running)
                                .startsWith("partition 0 from offset 0 on, whose handler has been running for PT"),
                        handled -> assertThat(handled)
                                .isEqualTo("partition 1 from offset 0 on (9 events handled, not committed)"));
    }

    @Test
    void of_partitionLostWhileItsHandlerRuns_namesIt() {
        Assignment lost = member.assignment(2).orElseThrow();
        run(lost);
        member.remove(lost, Reason.LOST);
        assertThat(UnfinishedWork.of(member).partitions())
                .singleElement()
                .asString()
                .startsWith("partition 2 from offset 0 on, whose handler");
    }
}
