package io.eventsql.spring.test;

import io.eventsql.eventsdb.EventsDb;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.MergedContextConfiguration;

/**
 * Gives a context a database of its own. Equal for equal classes, so that a context is used again for its class only.
 *
 * @param testClass whose database it is
 */
record OwnDatabase(Class<?> testClass, boolean durable) implements ContextCustomizer {
    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static final int NAME_LENGTH_MAX = 40;

    /** Unless the application says otherwise: cached contexts must not hold on to connections. */
    private static final Map<String, Object> POOL = Map.of(
            "spring.datasource.hikari.maximum-pool-size", "20",
            "spring.datasource.hikari.minimum-idle", "1",
            "spring.datasource.hikari.idle-timeout", "10000");

    @Override
    public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration merged) {
        EventsDb server = EmbeddedServer.get(durable);
        String simple = testClass.getSimpleName().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9_]", "_");
        String name = "t" + DATABASES.incrementAndGet() + "_"
                + simple.substring(0, Math.min(simple.length(), NAME_LENGTH_MAX));
        server.createDatabase(name);
        context.getEnvironment().getPropertySources().addLast(new MapPropertySource("embeddedEventSqlPool", POOL));
        context.getBeanFactory()
                .registerSingleton(
                        "embeddedEventSqlConnectionDetails",
                        new Details(server.jdbcUrl(name), server.username(), server.password()));
    }

    /** Where the database is; goes before {@code spring.datasource.*}. */
    private record Details(String url, String user, String secret) implements JdbcConnectionDetails {
        @Override
        public String getJdbcUrl() {
            return url;
        }

        @Override
        public String getUsername() {
            return user;
        }

        @Override
        public String getPassword() {
            return secret;
        }
    }
}
