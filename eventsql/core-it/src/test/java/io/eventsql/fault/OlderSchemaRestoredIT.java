package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: running processes do not use a database that was restored from a backup older than its last migration, say so once, and
 * continue when it was migrated; no partition is stopped until then. Method: while a handler fails, the database forgets its last
 * migration and gets another incarnation.
 */
@Timeout(180)
class OlderSchemaRestoredIT {
    private static final String STREAM = "orders";
    private static final String FILE = "V42__erased_tombstones.sql";
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private final Handled handled = new Handled();
    private final AtomicBoolean restored = new AtomicBoolean();

    private static void restore(DataSource database) throws SQLException {
        Sql.execute(
                database,
                "UPDATE eventsql.schema_version SET version = -42 WHERE version = 42",
                "SELECT eventsql.declare_restored('a backup before version 42')");
    }

    /** Shown before the fix: the incarnation was adopted, and statements failed by functions that the schema lacks. */
    @Test
    void restore_schemaLacksAFile_shardIsNotUsedUntilItIsMigrated() throws SQLException {
        try (TestCluster cluster = TestCluster.ofShards(1);
                CapturedLog log = CapturedLog.of("shard")) {
            DataSource database = cluster.dataSources().getFirst();
            EventSql eventSql = cluster.open(settings -> settings.publishTimeout(Duration.ofSeconds(3)));
            eventSql.createStream(StreamSpec.of(STREAM).withPartitions(1));
            ConsumerSpec spec = ConsumerSpec.of(STREAM, "c")
                    .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                    .withFailurePolicy(FailurePolicy.DEAD_LETTER);
            try (Subscription ignored = eventSql.subscribe(spec, event -> {
                if (event.text().equals("bad")) {
                    if (!restored.getAndSet(true)) {
                        restore(database);
                    }
                    throw new IllegalStateException("cannot handle it");
                }
                handled.add(event);
            })) {
                eventSql.publisher().publish(STREAM, Event.ofText("before"));
                handled.awaitSize(1);
                eventSql.publisher().publish(STREAM, Event.ofText("bad"));
                await().atMost(DEADLINE).until(() -> !log.lines(FILE).isEmpty());
                assertThatThrownBy(() -> eventSql.publisher().publish(STREAM, Event.ofText("refused")))
                        // The last attempt may be under way at the deadline.
                        .isInstanceOfAny(EventNotStoredException.class, EventOutcomeUnknownException.class)
                        .hasStackTraceContaining(FILE);
                assertThat(log.lines(FILE)).singleElement().asString().startsWith("ERROR Shard shard0 was restored");
                assertThat(eventSql.consumer(STREAM, "c").state())
                        .extracting(PartitionState::status)
                        .containsExactly(Status.RUNNING);

                Sql.execute(database, "UPDATE eventsql.schema_version SET version = 42 WHERE version = -42");
                await().atMost(DEADLINE)
                        .until(() ->
                                !eventSql.consumer(STREAM, "c").parkedEvents(10).isEmpty());
                eventSql.publisher().publish(STREAM, Event.ofText("after"));
                handled.awaitSize(2);
            }
            assertThat(handled.texts()).containsExactly("before", "after");
        }
    }
}
