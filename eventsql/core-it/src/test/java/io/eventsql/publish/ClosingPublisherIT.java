package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.PartialPublishException;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Goal: closing an instance whose calls cannot be appended fails each of them, with what is certain about it. Method: the
 * partitions are locked; one batch is sent, others wait, and a caller waits for room in the buffer.
 */
class ClosingPublisherIT extends PublishFixture {
    @Test
    void close_callsAreQueued_eachFailsWithItsOutcome() throws Exception {
        EventSql eventSql = open(
                dataSource(),
                settings()
                        .publishTimeout(Duration.ofSeconds(60))
                        .bufferBytes(100_000)
                        .appendConnections(1));
        String stream = newStream(eventSql, 1);
        whilePartitionsAreLocked(() -> {
            CompletableFuture<EventPosition> sent = publish(eventSql, stream, "k", "sent");
            await().until(() -> eventSql.buffers().getFirst().waitingCalls() == 0);
            List<CompletableFuture<EventPosition>> queued = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                queued.add(eventSql.publisher().publishAsync(stream, Event.of("k", new byte[18_000])));
            }
            CompletableFuture<EventPosition> blocked = new CompletableFuture<>();
            Thread caller = Thread.ofVirtual().start(() -> {
                try {
                    blocked.complete(eventSql.publisher().publish(stream, Event.of("k", new byte[18_000])));
                } catch (RuntimeException e) {
                    blocked.completeExceptionally(e);
                }
            });
            await().until(() -> eventSql.buffers().getFirst().blockedCallers() == 1);

            assertThat(eventSql.close(Duration.ofSeconds(1))).isFalse();

            assertThat(failureOf(sent))
                    .isInstanceOf(EventOutcomeUnknownException.class)
                    .hasMessageContaining("settings.closeTimeout");
            for (CompletableFuture<EventPosition> call : queued) {
                assertThat(failureOf(call))
                        .isInstanceOf(EventNotStoredException.class)
                        .hasMessageContaining("settings.closeTimeout");
            }
            assertThat(failureOf(blocked))
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("closed");
            caller.join();
            assertThatThrownBy(() -> eventSql.publisher().publish(stream, Event.ofText("late")))
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("the publisher is closed");
        });
    }

    /** Their outcome is that of several shards, whose appenders are closed one after the other. */
    @Test
    void publishAllOverTwoShards_afterAndDuringClose_completes() throws Exception {
        try (TestCluster two = TestCluster.ofShards(2)) {
            List<Event> events = IntStream.range(0, 50)
                    .mapToObj(i -> Event.ofText("k" + i, "v"))
                    .toList();
            EventSql eventSql = EventSql.builder(two.dataSources())
                    .settings(settings().build())
                    .build();
            String stream = newStream(eventSql, 1);
            try (Connection holder = two.dataSources().get(1).getConnection()) {
                holder.setAutoCommit(false);
                Sql.query(holder, "SELECT partition FROM eventsql.stream_partition FOR UPDATE");
                CompletableFuture<List<EventPosition>> during =
                        eventSql.publisher().publishAllAsync(stream, events);
                assertThat(eventSql.close(Duration.ofSeconds(1))).isFalse();
                assertThat(failureOf(during)).isInstanceOf(PartialPublishException.class);
                holder.rollback();
            }
            assertThat(failureOf(eventSql.publisher().publishAllAsync(stream, events)))
                    .isInstanceOf(EventNotStoredException.class);
        }
    }
}
