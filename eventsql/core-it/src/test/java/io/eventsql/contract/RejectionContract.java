package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.PartialPublishException;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Publishing what is not stored: to an unknown stream, and what a database rejects. */
abstract class RejectionContract extends Contract {
    RejectionContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void publish_unknownStream_isRejectedUntilCreated() {
        String name = newName();
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> publisher.publish(name, Event.ofText("x")))
                .withMessageContaining(name);
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> publisher.publishAllAsync(name, List.of(Event.ofText("x"))));
        cluster.open().createStream(stored(StreamSpec.of(name).withPartitions(1)));
        assertThat(publisher.publish(name, Event.ofText("x")).offset()).isZero();
    }

    @Test
    void publishAll_databaseRejectsOneEvent_onlyItsShardStoresNothing() throws Exception {
        String stream = newStream();
        cluster.execute(
                storage == Storage.ROWS
                        ? "ALTER TABLE eventsql.events_" + stream + " ADD CONSTRAINT no_poison CHECK (key <> 'poison')"
                        : "ALTER TABLE eventsql.events_" + stream + "__blocks ADD CONSTRAINT no_poison"
                                + " CHECK (position('\\x706f69736f6e'::bytea IN block) = 0)");
        List<CompletableFuture<EventPosition>> concurrent = new ArrayList<>();
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            events.add(Event.ofText("key-" + i, "poisoned call"));
        }
        events.add(30, Event.ofText("poison", "poisoned call"));
        for (int i = 0; i < 50; i++) {
            concurrent.add(publisher.publishAsync(stream, Event.ofText("other-" + i, "fine")));
        }
        CompletableFuture<List<EventPosition>> poisoned = publisher.publishAllAsync(stream, events);
        for (int i = 50; i < 100; i++) {
            concurrent.add(publisher.publishAsync(stream, Event.ofText("other-" + i, "fine")));
        }

        for (CompletableFuture<EventPosition> fine : concurrent) {
            assertThat(readOne(fine.get(120, TimeUnit.SECONDS)).text()).isEqualTo("fine");
        }
        assertThatThrownBy(() -> poisoned.get(120, TimeUnit.SECONDS)).cause().satisfies(failure -> {
            if (shards == 1) {
                assertThat(failure).isInstanceOf(EventNotStoredException.class).hasMessageContaining("no_poison");
                return;
            }
            List<PartialPublishException.Outcome> outcomes = ((PartialPublishException) failure).outcomes();
            assertThat(outcomes).hasSize(61);
            assertThat(outcomes.get(30).failure()).isInstanceOf(EventNotStoredException.class);
            List<EventPosition> stored = outcomes.stream()
                    .filter(PartialPublishException.Outcome::isStored)
                    .map(PartialPublishException.Outcome::position)
                    .toList();
            assertThat(stored.stream().map(EventPosition::shard).distinct()).hasSize(shards - 1);
            assertThat(stored).allMatch(p -> readOne(p).text().equals("poisoned call"));
        });
        long storedOfPoisoned = readAll(stream).stream()
                .filter(e -> e.text().equals("poisoned call"))
                .count();
        assertThat(storedOfPoisoned).isLessThan(61).matches(n -> shards > 1 || n == 0);
        assertThat(readAll(stream)).hasSize(100 + (int) storedOfPoisoned);
    }
}
