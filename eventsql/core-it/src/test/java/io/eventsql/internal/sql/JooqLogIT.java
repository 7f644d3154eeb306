package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.TestCluster;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: an application's log contains nothing of jOOQ's own: no logo, no tip, no opinion of the server's version.
 * Method: jOOQ logs them once in a JVM, so a new one opens the library and publishes, and its log is read.
 */
@Timeout(60)
class JooqLogIT {
    /** The new JVM, which logs to its standard output; its argument is the database's URL. */
    static final class Application {
        public static void main(String[] arguments) {
            PGSimpleDataSource dataSource = new PGSimpleDataSource();
            dataSource.setUrl(arguments[0]);
            try (EventSql eventSql = EventSql.builder(dataSource).build()) {
                eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
                eventSql.publisher().publish("orders", Event.ofText("key", "value"));
            }
        }
    }

    @Test
    void open_inANewJvm_logsNothingOfJooq() throws Exception {
        PGSimpleDataSource database = (PGSimpleDataSource) TestCluster.newDatabaseWithTables();
        String url = database.getUrl() + (database.getUrl().contains("?") ? "&" : "?") + "user=" + database.getUser()
                + "&password=" + database.getPassword();
        Process application = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Dlogback.configurationFile=logback-info.xml",
                        "-cp",
                        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                        Application.class.getName(),
                        url)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        List<String> log;
        try (var output = application.inputReader()) {
            log = output.lines().toList();
        } finally {
            application.destroyForcibly();
        }
        assertThat(application.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(log).as("what the library itself logs").anyMatch(line -> line.startsWith("INFO io.eventsql."));
        assertThat(log).noneMatch(line -> line.contains("org.jooq"));
    }
}
