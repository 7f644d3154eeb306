package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: the events of a segment are frozen while it grows, long before a vacuum against wraparound. Method: on a server whose
 * autovacuum looks at its tables each second, a segment gets a twentieth of its events: afterwards the oldest transaction that it
 * remembers is newer than the one of its first event. By PostgreSQL's defaults none of them would be frozen, as they are younger than
 * 50 million transactions.
 */
@Timeout(180)
class SegmentFreezeIT {
    private static final int BATCHES = 25;
    private static final List<Event> BATCH = Collections.nCopies(1_000, Event.ofText("key", "x".repeat(200)));

    @Test
    void publish_freezesTheSegmentWhileItGrows() throws SQLException {
        try (EmbeddedEventsDb server = EmbeddedEventsDb.builder()
                        .setting("autovacuum_naptime", "1s")
                        .start();
                HikariDataSource pool = TestCluster.pool(server.dataSource());
                EventSql eventSql = EventSql.builder(pool).build()) {
            EventPublisher publisher = eventSql.publisher();
            for (Storage storage : Storage.values()) {
                String stream = stream(storage);
                eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withStorage(storage));
                for (int i = 0; i < BATCHES; i++) {
                    publisher.publishAll(stream, BATCH);
                }
            }
            for (Storage storage : Storage.values()) {
                String stream = stream(storage);
                await().atMost(Duration.ofMinutes(1))
                        .untilAsserted(() -> assertThat(unfrozen(pool, stream)).isEmpty());
                assertThat(Sql.queryLong(pool, "SELECT count(*) FROM eventsql.events_" + stream))
                        .isEqualTo((long) BATCHES * BATCH.size());
            }
        }
    }

    private static String stream(Storage storage) {
        return "of_" + storage.name().toLowerCase(Locale.ROOT);
    }

    /** The segment with events, if it remembers the transaction of the first one. */
    private static List<String> unfrozen(DataSource database, String stream) throws SQLException {
        return Sql.query(database, """
                SELECT c.relname FROM pg_class c
                WHERE c.oid = 'eventsql.events_%1$s__p0_s0'::regclass
                  AND age(c.relfrozenxid) >= (
                      SELECT age(xmin) FROM eventsql.events_%1$s__p0_s0 ORDER BY event_offset LIMIT 1)""".formatted(stream));
    }
}
