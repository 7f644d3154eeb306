package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregate.Window;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Random;

/** Base class of the contract of continuous aggregates: streams with random events, and their model. */
abstract class AggregateFixture extends Contract {
    static final Duration DEADLINE = Duration.ofSeconds(60);

    private final Random random = new Random(seed);

    AggregateFixture(ContractCluster databases) {
        super(databases);
    }

    final void publish(String stream, int events) {
        publisher.publishAll(stream, AggregateModel.events(random, events));
    }

    static List<Window> windows(ContinuousAggregate aggregate) {
        return aggregate.windows(Instant.EPOCH, Instant.parse("2100-01-01T00:00:00Z"), ContinuousAggregate.WINDOWS_MAX);
    }

    /** Waits until the aggregate equals what the model computes from the events that are stored now. */
    final void awaitModel(ContinuousAggregate aggregate) {
        List<Window> expected = AggregateModel.windows(readAll(aggregate.spec().stream()));
        await().atMost(DEADLINE)
                .untilAsserted(
                        () -> assertThat(windows(aggregate)).as("seed " + seed).isEqualTo(expected));
    }
}
