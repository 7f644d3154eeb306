package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.check.LossCheck;
import io.eventsql.fixture.check.LossCheck.Loss;
import io.eventsql.fixture.check.LossReports;
import io.eventsql.fixture.load.Witness;
import io.eventsql.fixture.process.ConsumerProcess;
import io.eventsql.fixture.server.RestorableServer;
import io.eventsql.fixture.server.RestorableServer.Backup;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: a recovery to a point in time under running publishers and members loses exactly what was written after that point,
 * which the publisher and the member report once; and the effects of an exactly-once handler, in transactions that the
 * application begins, are those of the stored events.
 *
 * <p>Method: a base backup and the archived WAL are restored up to a restore point, twice, behind the same address. Nothing
 * that runs is stopped.
 */
@Timeout(300)
class PointInTimeRecoveryIT {
    private static final StreamSpec STREAM =
            TestStreams.of("orders").withPartitions(2).withSegmentSize(1_000);

    @TempDir
    private Path folder;

    private static void writeEffect(StoredEvent event, Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
            insert.setString(1, event.text());
            insert.execute();
        }
    }

    private static Settings.Builder settings() {
        return Settings.builder()
                .publishTimeout(Duration.ofSeconds(60))
                .networkTimeout(Duration.ofSeconds(5))
                .lease(Duration.ofSeconds(4))
                .heartbeat(Duration.ofMillis(500));
    }

    @Test
    void recovery_twiceToTheSamePoint_losesAndReportsWhatFollowed() throws Exception {
        try (RestorableServer server = RestorableServer.start(folder);
                HikariDataSource pool = Pools.pool(server.current());
                Witness witness = new Witness(pool, STREAM, folder, settings())) {
            Sql.execute(pool, "CREATE TABLE effect (text text)"); // no primary key, so that duplicates are visible
            witness.eventSql()
                    .subscribeTransactional(
                            ConsumerSpec.of(STREAM.name(), "once"),
                            ConsumerProcess::inTransaction,
                            PointInTimeRecoveryIT::writeEffect);
            witness.start(3, Seeds.random("PointInTimeRecoveryIT"), 80);
            witness.awaitProgress();
            Backup backup = server.backUp();
            witness.awaitProgress();
            String point = server.newRestorePoint();
            List<Loss> losses = new ArrayList<>();
            for (int number = 0; number < 2; number++) {
                witness.awaitProgress(); // with what is lost
                losses.add(restore(server, backup, point));
                witness.awaitProgress();
                awaitReports(witness, number, losses);
            }
            witness.stop();
            witness.awaitHandled("once");
            witness.awaitHandled(Witness.CONSUMER);
            List<Ledger.Stored> stored = Ledger.read(STREAM.name(), List.of(pool));
            assertThat(LossCheck.verify(stored, witness.acknowledged(), losses))
                    .as("acknowledged events that were lost")
                    .isPositive();
            LossReports.verifyHandled(stored, witness.handled());
            assertThat(Sql.query(pool, "SELECT text FROM effect"))
                    .containsExactlyInAnyOrderElementsOf(Ledger.values(stored));
            assertThat(EventSql.threadFailures()).isEmpty();
        }
    }

    private static Loss restore(RestorableServer server, Backup backup, String point) throws Exception {
        long crash = System.nanoTime();
        List<Long> kept = new ArrayList<>();
        long[] nanos = new long[1];
        server.restore(backup, point, () -> {
            kept.addAll(heads(server));
            nanos[0] = System.nanoTime();
        });
        return new Loss(crash, nanos[0], kept);
    }

    private static List<Long> heads(RestorableServer server) {
        try {
            return Sql.query(
                            server.current().adminDataSource(),
                            "SELECT next_offset FROM eventsql.partition_head ORDER BY partition")
                    .stream()
                    .map(Long::valueOf)
                    .toList();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void awaitReports(Witness witness, int number, List<Loss> losses) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(
                        () -> witness.reports().verify(number, losses, witness.acknowledged(), witness.handled()));
    }
}
