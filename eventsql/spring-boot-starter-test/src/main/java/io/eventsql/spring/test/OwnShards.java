package io.eventsql.spring.test;

import io.eventsql.eventsdb.EventsDb;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.boot.context.properties.bind.BindResult;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/**
 * Gives each shard in {@code eventsql.shards} a database of its own instead of the one that is configured.
 *
 * @param server the server of these databases
 * @param prefix what their names begin with
 */
record OwnShards(EventsDb server, String prefix) {
    private static final ConfigurationPropertyName SHARDS = ConfigurationPropertyName.of("eventsql.shards");
    /** The number of elements of a shard's name. */
    private static final int SHARD_ELEMENTS = SHARDS.getNumberOfElements() + 1;
    /** The properties of a shard, in their uniform form. */
    private static final Set<String> PROPERTIES =
            Set.of("url", "username", "password", "poolsize", "connectiontimeout", "hikari", "replica");
    /** By this setting HikariCP connects without a URL. */
    private static final String SETTING_INSTEAD_OF_A_URL = "hikari.data-source-class-name";

    /**
     * Creates the databases and overrides the properties, those of replicas with none: their readers read from the shards.
     *
     * @throws InvalidConfigurationPropertyValueException if the pool of a shard connects without a URL
     */
    void replace(ConfigurableEnvironment environment) {
        Binder binder = Binder.get(environment);
        Map<String, Object> addresses = new LinkedHashMap<>();
        Map<String, Object> defaults = new LinkedHashMap<>();
        int count = 0;
        for (ConfigurationPropertyName name : names(environment)) {
            requireUrl(binder, name);
            String shard = written(name);
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
            defaults.put(shard + ".hikari.minimum-idle", OwnDatabase.MINIMUM_IDLE);
            defaults.put(shard + ".hikari.idle-timeout", OwnDatabase.IDLE_TIMEOUT_MS);
        }
        environment.getPropertySources().addFirst(new MapPropertySource("embeddedEventSqlShards", addresses));
        environment.getPropertySources().addLast(new MapPropertySource("embeddedEventSqlShardDefaults", defaults));
    }

    /** Returns the names of the shards, in the order in which Spring Boot finds them. */
    private static Set<ConfigurationPropertyName> names(ConfigurableEnvironment environment) {
        Set<ConfigurationPropertyName> names = new LinkedHashSet<>();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source instanceof IterableConfigurationPropertySource properties) {
                properties.stream()
                        .filter(OwnShards::isOfShard)
                        .map(property -> property.chop(SHARD_ELEMENTS))
                        .forEach(names::add);
            }
        }
        return names;
    }

    /**
     * Returns whether this is a property of a shard. {@code EVENTSQL_SHARDS_ORDER_DB_PASSWORD} may be one of {@code
     * order_db}, but is none of {@code order}, although each underscore of a variable separates elements.
     */
    private static boolean isOfShard(ConfigurationPropertyName property) {
        return SHARDS.isAncestorOf(property)
                && property.getNumberOfElements() > SHARD_ELEMENTS
                && PROPERTIES.contains(property.getElement(SHARD_ELEMENTS, Form.UNIFORM));
    }

    /**
     * Returns the shard's name as it is written. With brackets it may be another one for Spring Boot, and a placeholder finds
     * a name with underscores or capitals only in this form.
     */
    private static String written(ConfigurationPropertyName shard) {
        String name = shard.getLastElement(Form.ORIGINAL);
        return SHARDS + (shard.isLastElementIndexed() ? "[" + name + "]" : "." + name);
    }

    private static void requireUrl(Binder binder, ConfigurationPropertyName shard) {
        BindResult<String> setting = binder.bind(shard.append(SETTING_INSTEAD_OF_A_URL), Bindable.of(String.class));
        setting.ifBound(value -> {
            throw new InvalidConfigurationPropertyValueException(
                    written(shard) + "." + SETTING_INSTEAD_OF_A_URL,
                    value,
                    "@EmbeddedEventSql replaces only databases with a URL. Set this in a profile that tests do not"
                            + " activate.");
        });
    }
}
