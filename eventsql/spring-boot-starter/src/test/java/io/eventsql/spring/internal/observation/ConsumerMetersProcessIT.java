package io.eventsql.spring.internal.observation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState.Status;
import io.eventsql.StreamSpec;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/**
 * Goal: the meters of a consumer remain when all its members are dead, and one process at a time has them. Method: processes
 * that only publish print their meters several times per interval; members and publishers are killed and frozen.
 */
@Timeout(180)
class ConsumerMetersProcessIT {
    private static final Duration INTERVAL = Duration.ofSeconds(2);
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private final List<Child> children = new ArrayList<>();
    private String url;
    private HikariDataSource pool;
    private EventSql eventSql;

    @BeforeEach
    void startDatabase() {
        url = TestServer.newUrl();
        pool = TestPools.newPool(new DriverManagerDataSource(
                url, TestServer.get().username(), TestServer.get().password()));
        eventSql = EventSql.builder(pool).build();
        eventSql.createStream(StreamSpec.of("orders").withPartitions(2));
    }

    @AfterEach
    void stopAll() {
        children.forEach(child -> child.process.destroyForcibly());
        eventSql.close();
        pool.close();
    }

    /** A process and the lines that it has printed. */
    private static final class Child {
        private static final Pattern LAG = Pattern.compile("METERS reporting=1\\.0 lag=([0-9.]+) .*");

        final Process process;
        final List<String> lines = new CopyOnWriteArrayList<>();

        Child(List<String> command) throws IOException {
            process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            Thread.ofPlatform()
                    .daemon()
                    .start(() -> process.inputReader().lines().forEach(lines::add));
        }

        void signal(String signal) throws IOException, InterruptedException {
            assertThat(new ProcessBuilder("kill", signal, Long.toString(process.pid()))
                            .start()
                            .waitFor())
                    .isZero();
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
        }

        String last() {
            return lines.isEmpty() ? "" : lines.getLast();
        }

        /** Waits until the last line has a lag of more than {@code least}: the process may report before it has meters. */
        double awaitLagAbove(double least) {
            return await().atMost(DEADLINE).until(() -> lag(last()), lag -> lag > least);
        }

        private static double lag(String line) {
            Matcher lag = LAG.matcher(line);
            return lag.matches() ? Double.parseDouble(lag.group(1)) : -1;
        }

        void awaitLine(String part) {
            await().atMost(DEADLINE).until(() -> last().contains(part));
        }
    }

    private Child start(String role) throws IOException {
        Child child = new Child(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx96m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                MeteredProcess.class.getName(),
                url,
                TestServer.get().username(),
                TestServer.get().password(),
                role,
                Long.toString(INTERVAL.toMillis())));
        children.add(child);
        return child;
    }

    @Test
    void allMembersDead_onePublisherReportsLagAndStoppedPartition() throws Exception {
        Child member = start("member");
        member.awaitLine("READY");
        eventSql.publisher().publish("orders", Event.ofText("key", "bad"));
        await().atMost(DEADLINE)
                .until(() -> eventSql.consumers().consumers().getFirst().partitions(Status.STOPPED) == 1);
        Child first = start("publisher");
        first.awaitLine("stopped=1.0 members=1.0");
        Child second = start("publisher");
        second.awaitLine("METERS reporting=0.0");

        member.kill();

        first.awaitLine("stopped=1.0 members=0.0");
        double lag = first.awaitLagAbove(0);
        first.awaitLagAbove(lag);
        assertThat(second.lines.stream().filter(line -> line.startsWith("METERS")))
                .as("the other process reports nothing")
                .isNotEmpty()
                .allMatch(line -> line.equals("METERS reporting=0.0 lag=none age=none stopped=none members=none"));

        first.signal("-STOP");
        second.awaitLagAbove(lag);
        int printed = first.lines.size();
        first.signal("-CONT");
        await().atMost(DEADLINE).until(() -> first.lines.size() > printed + 20);
        // The one line that was being printed when the process was frozen has the values of then.
        assertThat(first.lines.subList(printed + 1, first.lines.size()))
                .as("the thawed process reports nothing")
                .allMatch(line -> line.startsWith("METERS reporting=0.0 "))
                .noneMatch(line -> line.matches(".* lag=[0-9].*"));

        second.kill();
        first.awaitLine("stopped=1.0 members=0.0");
        first.awaitLagAbove(lag);
    }
}
