package io.eventsql.spring.test;

import io.eventsql.eventsdb.EventsDb;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/**
 * Gives each shard in {@code eventsql.shards} a database of its own instead of the one that is configured.
 *
 * @param server the server of these databases
 * @param prefix what their names begin with
 */
record OwnShards(EventsDb server, String prefix) {
    private static final String SHARDS = "eventsql.shards";
    /** By these settings HikariCP connects without a URL. */
    private static final List<String> SETTINGS_INSTEAD_OF_A_URL = List.of("data-source-class-name", "data-source-jndi");

    /**
     * Creates the databases and overrides the properties, those of replicas with none: their readers read from the shards.
     *
     * @throws InvalidConfigurationPropertyValueException if the pool of a shard connects without a URL
     */
    void replace(ConfigurableEnvironment environment) {
        Binder binder = Binder.get(environment);
        Set<String> names = binder.bind(SHARDS, Bindable.mapOf(String.class, Object.class))
                .map(Map::keySet)
                .orElse(Set.of());
        Map<String, Object> addresses = new LinkedHashMap<>();
        Map<String, Object> defaults = new LinkedHashMap<>();
        int count = 0;
        for (String name : names) {
            String shard = isPlain(name) ? SHARDS + "." + name : SHARDS + "[" + name + "]";
            requireUrl(binder, shard);
            String database = prefix + "_s" + count++;
            server.createDatabase(database);
            String url = server.jdbcUrl(database);
            // The pool's own settings have precedence over the shard's.
            addresses.putAll(Map.of(shard + ".url", url, shard + ".hikari.jdbc-url", url));
            for (String owner : List.of(shard, shard + ".hikari")) {
                addresses.put(owner + ".username", server.username());
                addresses.put(owner + ".password", server.password());
            }
            addresses.put(shard + ".replica.url", "");
            // Cached contexts must not keep connections.
            defaults.put(shard + ".hikari.minimum-idle", "1");
            defaults.put(shard + ".hikari.idle-timeout", "10000");
        }
        environment.getPropertySources().addFirst(new MapPropertySource("embeddedEventSqlShards", addresses));
        environment.getPropertySources().addLast(new MapPropertySource("embeddedEventSqlShardDefaults", defaults));
    }

    private static void requireUrl(Binder binder, String shard) {
        for (String setting : SETTINGS_INSTEAD_OF_A_URL) {
            String property = shard + ".hikari." + setting;
            binder.bind(property, String.class).ifBound(value -> {
                throw new InvalidConfigurationPropertyValueException(
                        property,
                        value,
                        "@EmbeddedEventSql replaces only databases with a URL. Set this in a profile that tests do not"
                                + " activate.");
            });
        }
    }

    /** Whether a name needs no brackets in a property. */
    private static boolean isPlain(String name) {
        return name.matches("[a-z0-9-]+");
    }
}
