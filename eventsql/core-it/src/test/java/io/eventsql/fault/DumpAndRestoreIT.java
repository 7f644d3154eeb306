package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.check.LossCheck;
import io.eventsql.fixture.check.LossCheck.Loss;
import io.eventsql.fixture.check.LossReports;
import io.eventsql.fixture.load.Witness;
import io.eventsql.fixture.server.InstalledServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: {@code pg_dump} and {@code pg_restore} under running publishers and members lose exactly what was written after the
 * dump, which the publisher and the member report once, also when the same dump is restored again; and nothing is published
 * to or consumed from a database that is only half restored.
 *
 * <p>Method: the programs of an installed PostgreSQL. The database is dropped under its clients, created and restored, in
 * the second run section by section.
 */
@Timeout(300)
class DumpAndRestoreIT {
    private final StreamSpec stream = TestStreams.of("orders").withPartitions(2).withSegmentSize(1_000);

    @TempDir
    private Path folder;

    private static Settings.Builder settings() {
        return Settings.builder()
                .publishTimeout(Duration.ofSeconds(60))
                .networkTimeout(Duration.ofSeconds(5))
                .lease(Duration.ofSeconds(4))
                .heartbeat(Duration.ofMillis(500));
    }

    @Test
    void restore_twiceIntoANewDatabase_losesAndReportsWhatFollowedTheDump() throws Exception {
        Optional<Path> programs = InstalledServer.programs();
        assumeTrue(programs.isPresent(), InstalledServer.MISSING);
        try (InstalledServer server = InstalledServer.start(programs.orElseThrow(), folder);
                HikariDataSource pool = server.pool();
                Witness witness = new Witness(pool, stream, folder, settings())) {
            witness.start(3, Seeds.random("DumpAndRestoreIT"), 80);
            witness.awaitProgress();
            Path dump = server.dump();
            List<Long> kept = server.dumpedHeads(dump, stream.partitions());
            List<Loss> losses = new ArrayList<>();
            for (int number = 0; number < 2; number++) {
                witness.awaitProgress(); // with what is lost
                long crash = System.nanoTime();
                server.recreateDatabase();
                losses.add(new Loss(crash, System.nanoTime(), kept));
                if (number == 0) {
                    server.restore(dump);
                } else {
                    restoreBySection(server, dump);
                }
                witness.awaitProgress();
                awaitReports(witness, number, losses);
            }
            witness.stop();
            witness.awaitHandled(Witness.CONSUMER);
            List<Ledger.Stored> stored = Ledger.read(stream.name(), List.of(pool));
            assertThat(LossCheck.verify(stored, witness.acknowledged(), losses))
                    .as("acknowledged events that were lost")
                    .isPositive();
            LossReports.verifyHandled(stored, witness.handled());
            assertThat(EventSql.threadFailures()).isEmpty();
        }
    }

    private static void restoreBySection(InstalledServer server, Path dump) throws Exception {
        server.restore(dump, "--section=pre-data");
        server.restore(dump, "--section=data");
        assertThat(Sql.query(server.dataSource(), "SELECT eventsql.find_incarnation_v1()"))
                .as("the incarnation of a half restored database")
                .containsOnlyNulls();
        server.restore(dump, "--section=post-data");
    }

    private static void awaitReports(Witness witness, int number, List<Loss> losses) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(
                        () -> witness.reports().verify(number, losses, witness.acknowledged(), witness.handled()));
    }
}
