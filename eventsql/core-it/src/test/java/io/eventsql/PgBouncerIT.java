package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Publishing and consuming through PgBouncer in transaction mode, where the library must not rely on session state:
 * settings, locks or prepared statements. Notifications do not pass, so consumers poll. Skipped unless the program {@code
 * pgbouncer} is installed.
 */
class PgBouncerIT {
    private static final int EVENTS = 500;

    @TempDir
    private Path folder;

    private static Optional<Path> program() {
        return Stream.concat(Stream.of(System.getenv("PATH").split(File.pathSeparator, -1)), Stream.of("/usr/sbin"))
                .map(directory -> Path.of(directory, "pgbouncer"))
                .filter(Files::isExecutable)
                .findFirst();
    }

    private Process start(Path program, EmbeddedEventsDb eventsDb, int port) throws IOException {
        URI database = URI.create(eventsDb.jdbcUrl().substring("jdbc:".length()));
        Path users = Files.writeString(
                folder.resolve("users"), "\"" + eventsDb.username() + "\" \"" + eventsDb.password() + "\"\n");
        Path settings = Files.writeString(
                folder.resolve("pgbouncer.ini"), """
                [databases]
                * = host=%s port=%d
                [pgbouncer]
                listen_addr = 127.0.0.1
                listen_port = %d
                unix_socket_dir =
                auth_type = plain
                auth_file = %s
                pool_mode = transaction
                default_pool_size = 6
                ignore_startup_parameters = extra_float_digits
                """.formatted(database.getHost(), database.getPort(), port, users));
        List<String> command = new ArrayList<>(List.of(program.toString()));
        if (System.getProperty("user.name").equals("root")) { // as which PgBouncer refuses to run
            Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
            command.addAll(List.of("-u", "nobody"));
        }
        command.add(settings.toString());
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("log").toFile())
                .start();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Test
    void transactionMode_publishAndConsumeInEveryWay_works() throws Exception {
        Optional<Path> program = program();
        assumeThat(program)
                .as("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)")
                .isPresent();
        try (EmbeddedEventsDb eventsDb = EmbeddedEventsDb.builder().start()) {
            int port = freePort();
            Process pgBouncer = start(program.get(), eventsDb, port);
            try {
                publishAndConsume(eventsDb, port);
            } finally {
                pgBouncer.destroy();
                assertThat(pgBouncer.waitFor(10, TimeUnit.SECONDS)).isTrue();
            }
        }
    }

    private static HikariDataSource pool(EmbeddedEventsDb eventsDb, int port) {
        String name = eventsDb.jdbcUrl().substring(eventsDb.jdbcUrl().lastIndexOf('/') + 1);
        return Pools.pool(eventsDb, "jdbc:postgresql://127.0.0.1:" + port + "/" + name, config -> {
            config.addDataSourceProperty("prepareThreshold", "0");
            config.setConnectionTimeout(30_000);
        });
    }

    private static void publishAndConsume(EmbeddedEventsDb eventsDb, int port) throws Exception {
        Settings settings = Settings.builder()
                .lease(Duration.ofSeconds(2))
                .pollInterval(Duration.ofMillis(200))
                .build();
        try (HikariDataSource firstPool = pool(eventsDb, port);
                HikariDataSource secondPool = pool(eventsDb, port);
                EventSql first = EventSql.builder(firstPool).settings(settings).build();
                EventSql second =
                        EventSql.builder(secondPool).settings(settings).build()) {
            first.createStream(StreamSpec.of("bounced").withPartitions(4));
            Sql.execute(eventsDb.dataSource(), "CREATE TABLE effect (text text)");
            Handled plain = new Handled();
            ConsumerSpec spec = ConsumerSpec.of("bounced", "plain")
                    .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                    .withFailurePolicy(FailurePolicy.DEAD_LETTER);
            List<Subscription> subscriptions = new ArrayList<>();
            for (EventSql process : List.of(first, second)) {
                subscriptions.add(process.subscribe(spec, event -> {
                    if (event.text().equals("7")) {
                        throw new IllegalStateException("not this one");
                    }
                    plain.add(event);
                }));
                subscriptions.add(process.subscribeTransactional(
                        ConsumerSpec.of("bounced", "once"), (event, connection) -> {
                            try (PreparedStatement insert =
                                    connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
                                insert.setString(1, event.text());
                                insert.execute();
                            }
                        }));
            }
            List<Event> events = IntStream.range(0, EVENTS)
                    .mapToObj(i -> Event.ofText("key-" + i % 20, Integer.toString(i)))
                    .toList();
            first.publisher().publishAll("bounced", events.subList(0, EVENTS / 2));
            second.publisher().publishAll("bounced", events.subList(EVENTS / 2, EVENTS));
            plain.awaitSize(EVENTS - 1);
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> first.positions("bounced", "once").stream().allMatch(p -> p.lag() == 0));
            subscriptions.forEach(Subscription::close);
            assertThat(first.consumer("bounced", "plain").parkedEvents(10)).hasSize(1);
            assertThat(Sql.query(eventsDb.dataSource(), "SELECT text FROM effect"))
                    .containsExactlyInAnyOrderElementsOf(
                            events.stream().map(Event::text).toList());
        }
    }
}
