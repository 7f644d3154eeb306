package io.eventsql.app.benchmark;

import static io.eventsql.app.benchmark.Batch.RUN;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;

class BenchmarkConsumerTest {
    private final BenchmarkRuns runs = new BenchmarkRuns();
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final BenchmarkConsumer consumer =
            new BenchmarkConsumer(runs, new ConsumeMetrics(registry, "account_created"), () -> 5_000);

    @Test
    void handle_foreignEvents_areCountedSeparately() {
        consumer.handle(Batch.ofPartition(0)
                .addForeign("{\"id\":1}")
                .addNumbers("a", 0)
                .addForeign("")
                .addNumbers("a", 1)
                .storedEvents());

        PhaseReport report = runs.report(RUN, false).getFirst().measured();
        assertThat(report.received()).isEqualTo(2);
        assertThat(report.lastHandledAtMicros()).isEqualTo(5_000);
        assertThat(registry.get("eventsql.app.events.foreign").counter().count())
                .isEqualTo(2);
    }

    @Test
    void handle_onlyForeignEvents_isFine() {
        consumer.handle(Batch.ofPartition(0).addForeign("x").storedEvents());

        assertThat(runs.report(RUN, false)).isNull();
    }
}
