package io.eventsql.spring.test;

import io.eventsql.eventsdb.EventsDb;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.MergedContextConfiguration;

/**
 * Gives a context a database of its own, and one for each shard. Equal for equal classes, so that a cached context is
 * reused only for its class.
 *
 * @param testClass the class that gets the database
 */
record OwnDatabase(Class<?> testClass, boolean durable) implements ContextCustomizer {
    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static final int NAME_LENGTH_MAX = 40;

    // Cached contexts must not keep connections.
    static final String MINIMUM_IDLE = "1";
    static final String IDLE_TIMEOUT_MS = "10000";

    /** Defaults, which the application can override. */
    private static final Map<String, Object> PROPERTIES = Map.of(
            "spring.datasource.hikari.maximum-pool-size", "20",
            "spring.datasource.hikari.minimum-idle", MINIMUM_IDLE,
            "spring.datasource.hikari.idle-timeout", IDLE_TIMEOUT_MS,
            // Slices such as @JdbcTest would replace the DataSource with an embedded H2.
            "spring.test.database.replace", "none",
            "eventsql.create-missing-streams", "true");

    @Override
    public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration merged) {
        EventsDb server = EmbeddedServer.get(durable);
        String simple = testClass.getSimpleName().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9_]", "_");
        String name = "t" + DATABASES.incrementAndGet() + "_"
                + simple.substring(0, Math.min(simple.length(), NAME_LENGTH_MAX));
        server.createDatabase(name);
        context.getEnvironment().getPropertySources().addLast(new MapPropertySource("embeddedEventSql", PROPERTIES));
        Details details = new Details(server.jdbcUrl(name), server.username(), server.password());
        RootBeanDefinition definition = new RootBeanDefinition(Details.class, () -> details);
        definition.setPrimary(true); // next to that of a @ServiceConnection, say
        ((BeanDefinitionRegistry) context.getBeanFactory())
                .registerBeanDefinition("embeddedEventSqlConnectionDetails", definition);
        // Later, because other customizers may add properties: those of @DynamicPropertySource, say.
        context.addBeanFactoryPostProcessor((BeanDefinitionRegistryPostProcessor)
                registry -> new OwnShards(server, name).replace(context.getEnvironment()));
    }

    /** The address of the database; has precedence over {@code spring.datasource.*}. */
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
