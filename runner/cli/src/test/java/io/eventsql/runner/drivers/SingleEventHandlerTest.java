package io.eventsql.runner.drivers;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.runner.driver.DeliveryListener;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class SingleEventHandlerTest {
    private final List<String> delivered = new ArrayList<>();
    private final List<String> failures = new ArrayList<>();
    private Runnable duringDelivery = () -> {};

    private final SingleEventHandler handler = new SingleEventHandler(
            new DeliveryListener() {
                @Override
                public <T> void delivered(
                        Iterable<T> page,
                        Function<? super T, @Nullable String> key,
                        Function<? super T, byte[]> value) {
                    page.forEach(event -> delivered.add(key.apply(event)));
                    duringDelivery.run();
                }

                @Override
                public void failed(Throwable failure) {
                    failures.add(failure.getMessage());
                }
            },
            Duration.ZERO);

    @Test
    void handle_eventsOneAfterTheOther_areDelivered() {
        handle("a");
        handle("a");
        handle(null);

        assertThat(delivered).containsExactly("a", "a", null);
        assertThat(failures).isEmpty();
    }

    @Test
    void handle_whileAnEventOfTheKeyIsHandled_isAFailure() {
        duringDelivery = () -> {
            duringDelivery = () -> {};
            handle("a");
        };
        handle("a");

        assertThat(failures).containsExactly("two events of the key a are handled at once");
    }

    @Test
    void handle_whileAnotherKeyIsHandled_isNone() {
        duringDelivery = () -> {
            duringDelivery = () -> {};
            handle("b");
        };
        handle("a");

        assertThat(delivered).containsExactly("a", "b");
        assertThat(failures).isEmpty();
    }

    private void handle(@Nullable String key) {
        try {
            handler.handle(
                    new StoredEvent(new EventPosition("stream", 0, 0, 0), key, new byte[0], Map.of(), Instant.EPOCH));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
