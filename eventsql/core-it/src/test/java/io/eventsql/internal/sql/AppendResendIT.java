package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.internal.sql.AppendStatement.Rows;
import java.sql.Connection;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The append function when a batch is resent before or after its original transaction has ended. */
class AppendResendIT extends AppendFixture {
    @Test
    void append_originalCommitsLater_resendsWaitAndReturnItsOffsets() throws Exception {
        createStream("open_commits", 1);
        append(1, Part.of("open_commits", 0, "before"));
        try (Connection original = pool.getConnection()) {
            original.setAutoCommit(false);
            Rows rows = rows(Part.of("open_commits", 0, "a", "b"));
            assertThat(APPEND.execute(original, producer, 2, MapFence.of(MAP_VERSION), null, rows))
                    .containsExactly(1);
            CompletableFuture<long[]> resend = async(() -> append(2, Part.of("open_commits", 0, "a", "b")));
            CompletableFuture<long[]> resendAgain = async(() -> append(2, Part.of("open_commits", 0, "a", "b")));
            awaitAppendsWaitingForALock(2);
            original.commit();
            assertThat(resend.get(120, TimeUnit.SECONDS)).containsExactly(1);
            assertThat(resendAgain.get(120, TimeUnit.SECONDS)).containsExactly(1);
        }
        assertThat(read("open_commits")).extracting(Ledger.Stored::value).containsExactly("before", "a", "b");
    }

    @Test
    void append_originalRollsBack_resendIsStored() throws Exception {
        createStream("open_rolls_back", 1);
        try (Connection original = pool.getConnection()) {
            original.setAutoCommit(false);
            Rows rows = rows(Part.of("open_rolls_back", 0, "a", "b"));
            assertThat(APPEND.execute(original, producer, 1, MapFence.of(MAP_VERSION), null, rows))
                    .containsExactly(0);
            CompletableFuture<long[]> resend = async(() -> append(1, Part.of("open_rolls_back", 0, "a", "b")));
            awaitAppendsWaitingForALock(1);
            original.rollback();
            assertThat(resend.get(120, TimeUnit.SECONDS)).containsExactly(0);
        }
        assertThat(read("open_rolls_back")).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    @Test
    void append_originalArrivesAfterLaterBatch_isRejected() throws Exception {
        createStream("late_original", 1);
        append(1, Part.of("late_original", 0, "a"));
        append(2, Part.of("late_original", 0, "b"));
        assertRejected("ES002", () -> append(1, Part.of("late_original", 0, "a")));
        assertThat(read("late_original")).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    /**
     * The server commits without its replica when the wait for it is canceled, and says so by a warning, also where the session
     * withholds warnings. Shown before the fix: the append counted as replicated there.
     */
    @ParameterizedTest
    @ValueSource(strings = {"notice", "error"})
    void append_waitForReplicaIsCanceled_isInDoubtAndResendStoresNothing(String clientMinMessages) throws Exception {
        String stream = "warned_" + clientMinMessages;
        createStream(stream, 1);
        Rows rows = rows(Part.of(stream, 0, "a"));
        Sql.execute(
                eventsDb.adminDataSource(),
                "ALTER SYSTEM SET synchronous_standby_names = 'absent'",
                "SELECT pg_reload_conf()");
        try {
            awaitCommitsWaitForReplicas();
            CompletableFuture<long[]> append = async(() -> {
                try (Connection connection = eventsDb.dataSource().getConnection()) {
                    Sql.query(connection, "SELECT set_config('client_min_messages', ?, false)", clientMinMessages);
                    return APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows);
                }
            });
            String waiting =
                    " FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%append_v%'"; // not the relay
            await().atMost(Duration.ofSeconds(120)).until(() -> number("SELECT count(*)" + waiting) == 1);
            number("SELECT count(pg_cancel_backend(pid))" + waiting);
            assertThatThrownBy(() -> append.get(120, TimeUnit.SECONDS))
                    .cause()
                    .isInstanceOfSatisfying(
                            AppendStatement.WarnedException.class,
                            e -> assertThat(SqlErrors.classify(e)).isEqualTo(ErrorKind.IN_DOUBT));
        } finally {
            Sql.execute(
                    eventsDb.adminDataSource(),
                    "ALTER SYSTEM RESET synchronous_standby_names",
                    "SELECT pg_reload_conf()");
        }
        try (Connection connection = pool.getConnection()) {
            assertThat(APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows))
                    .containsExactly(0);
        }
        assertThat(eventSql.publisher().publish(stream, Event.ofText("b")).offset())
                .isEqualTo(1);
        assertThat(read(stream)).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    /** The server reads its configuration some time after it was requested; a commit before that does not wait. */
    private void awaitCommitsWaitForReplicas() {
        AtomicReference<CompletableFuture<Long>> commit = new AtomicReference<>(CompletableFuture.completedFuture(0L));
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            if (commit.get().isDone()) {
                commit.set(async(() -> number("SELECT pg_current_xact_id()::text::bigint")));
            }
            return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") > 0;
        });
    }

    @Test
    void append_triggerWarns_isNotInDoubt() throws Exception {
        createStream("warned_by_trigger", 1);
        execute("CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                + " $$ BEGIN RAISE WARNING 'of the application'; RETURN NULL; END $$");
        execute("CREATE TRIGGER warn AFTER INSERT ON eventsql.events_warned_by_trigger FOR EACH STATEMENT"
                + " EXECUTE FUNCTION warn()");

        assertThat(append(1, Part.of("warned_by_trigger", 0, "a"))).containsExactly(0);
    }
}
