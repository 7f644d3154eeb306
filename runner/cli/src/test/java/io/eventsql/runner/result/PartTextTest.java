package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PartTextTest {
    private final PartRecorder recorder = new PartRecorder("append", "two ways");

    @Test
    void of_tables_haveAlignedColumns() {
        Figure copy = Figure.ofRounds(List.of(1_000.0, 2_000.0, 3_000.0), "events/s");
        Figure library = Figure.ofRounds(List.of(500.0, 1_000.0, 1_500.0), "events/s");
        ResultPart part = recorder.add("event_bytes_mean", Figure.of(230.8, "bytes"))
                .add("rates", "COPY", "events_per_second", copy)
                .add("rates", "library", "events_per_second", library)
                .add("rates", "library", "vs COPY", library.ratioTo(copy))
                .addLatency("latency", "all", "", new Percentiles(1, 2, 3.5, 4, 5, 6))
                .addSettings(Map.of("fsync", "on"))
                .part();

        assertThat(String.join("\n", PartText.of(part))).isEqualTo("""
                APPEND: two ways
                event_bytes_mean  231 bytes
                rates         events_per_second                 vs COPY
                COPY     2,000 (1,000 to 3,000)
                library    1,000 (500 to 1,500)  0.500 (0.500 to 0.500)
                latency  p50_ms  p99_ms  max_ms
                all           1   3.500       5
                {fsync=on}""");
    }

    @Test
    void of_partWithoutRounds_saysSo() {
        ResultPart part = recorder.add("events", Figure.of(3)).part();

        assertThat(PartText.of(part).getFirst()).isEqualTo("APPEND: two ways; one run");
    }

    @Test
    void problems_countWhatShouldNotBe() {
        ResultPart part = recorder.requireNone(0, "events were lost")
                .requireNone(-1, "events are missing")
                .requireNoErrors(List.of(new ErrorCount("SomeException", 3, "some message")), "with a snapshot")
                .part();

        assertThat(part.problems())
                .containsExactly(
                        "-1 events are missing", "3 events with a snapshot failed with SomeException: some message");
    }

    @Test
    void part_fromItsFile_isTheSame() {
        ResultPart part = recorder.add(
                        "rates", "COPY", "events_per_second", Figure.ofRounds(List.of(1.0, 2.0), "events/s"))
                .add("events", Figure.of(3))
                .part();

        assertThat(JsonFiles.fromTree(JsonFiles.toTree(part), ResultPart.class)).isEqualTo(part);
    }
}
