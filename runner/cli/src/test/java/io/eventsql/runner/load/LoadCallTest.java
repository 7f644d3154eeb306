package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.PartialPublishException;
import io.eventsql.PartialPublishException.Outcome;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LoadCallTest {
    private static final EventPosition STORED = new EventPosition("s", 0, 0, 1);

    /** Stores the first and the third of four events. */
    private static final class Partly implements PublishTarget {
        @Override
        public void publish(List<Event> events) {
            throw new PartialPublishException(
                    "some",
                    List.of(
                            new Outcome(STORED, null),
                            new Outcome(null, new EventNotStoredException("not stored", null)),
                            new Outcome(STORED, null),
                            new Outcome(null, new EventOutcomeUnknownException("unknown", null))),
                    null);
        }

        @Override
        public CompletionStage<?> publishAsync(List<Event> events) {
            return CompletableFuture.runAsync(() -> publish(events), Runnable::run);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void publish_partlyFailed_countsEachEventByItsOutcome(boolean async) {
        PublishMeter meter = new PublishMeter();
        LoadStream stream = new LoadStream(new Partly());
        long first = stream.claim(false, 4);
        LoadCall call = new LoadCall(stream, false, first, Collections.nCopies(4, Event.ofText("x")), 0);

        if (async) {
            call.publishAsync(LoadClock.SYSTEM, meter);
        } else {
            call.publish(LoadClock.SYSTEM, meter);
        }

        PhaseMeasurement measured = meter.measurement(4, new ClockAnchor(0, 1_000_000));
        assertThat(measured.publishedEvents()).isEqualTo(2);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(2);
        assertThat(measured.errors())
                .containsExactly(
                        new ErrorCount(EventNotStoredException.class.getName(), 1, "not stored"),
                        new ErrorCount(EventOutcomeUnknownException.class.getName(), 1, "unknown"));
        assertThat(meter.answeredEvents()).isEqualTo(4);
        NumberSet stored = new NumberSet();
        stored.add(first);
        stored.add(first + 2);
        assertThat(stream.acknowledgedNumbers(false).encode()).isEqualTo(stored.encode());
    }
}
