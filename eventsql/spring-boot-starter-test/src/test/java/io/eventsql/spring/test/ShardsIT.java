package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.BufferState;
import io.eventsql.EventSql;
import io.eventsql.spring.test.Shop.OrderPlaced;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.Environment;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.MutablePropertySources;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** A test never connects to the shards that are configured for production. */
@EventSqlTest(
        properties = {
            "eventsql.shards.first.url=" + ShardsIT.PRODUCTION,
            "eventsql.shards.first.username=production",
            "eventsql.shards.first.hikari.jdbcUrl=" + ShardsIT.PRODUCTION,
            "eventsql.shards.first.hikari.password=secret",
            "eventsql.shards.first.replica.url=" + ShardsIT.PRODUCTION,
            "eventsql.shards[Second_Shard].url=" + ShardsIT.PRODUCTION,
            "eventsql.shards.third_Shard.pool-size=7"
        })
class ShardsIT {
    /** Nothing listens on this port. */
    static final String PRODUCTION = "jdbc:postgresql://127.0.0.1:1/production";

    @DynamicPropertySource
    static void third(DynamicPropertyRegistry registry) {
        registry.add("eventsql.shards.third_Shard.url", () -> PRODUCTION);
    }

    @Autowired
    private Shop.Orders orders;

    @Autowired
    private Shop.Mailer mailer;

    @Autowired
    private EventSql eventSql;

    @Autowired
    private EventSqlTestSupport events;

    @Autowired
    private JdbcTemplate jdbc;

    @Test
    void shards_areDatabasesOfTheEmbeddedServer() {
        IntStream.range(0, 50).forEach(i -> orders.place(new OrderPlaced("4711-" + i, 1)));

        events.awaitHandled("orders", "mailer");

        assertThat(mailer.mails).hasSize(50);
        assertThat(eventSql.buffers()).extracting(BufferState::name).contains("first", "Second_Shard", "third_Shard");
        String own = jdbc.queryForObject("SELECT current_database()", String.class);
        assertThat(jdbc.queryForList("SELECT datname FROM pg_database WHERE datname LIKE '%shardsit%'", String.class))
                .containsExactlyInAnyOrder(own, own + "_s0", own + "_s1", own + "_s2");
    }

    @Test
    void shard_nameWrittenWithoutBrackets_keepsItsSettingsAndHasNoOtherAddress(@Autowired Environment environment) {
        assertThat(eventSql.shards())
                .filteredOn(shard -> shard.name().equals("third_Shard"))
                .extracting("dataSource.maximumPoolSize")
                .containsExactly(7);
        assertThat(environment.getProperty("eventsql.shards.third_Shard.url")).contains("shardsit_s");
    }

    @Test
    void replace_environmentVariableOfANameWithAnUnderscore_isOfNoOtherShard() {
        StandardEnvironment environment = new StandardEnvironment();
        MutablePropertySources sources = environment.getPropertySources();
        sources.replace(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                new SystemEnvironmentPropertySource(
                        StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                        Map.of("EVENTSQL_SHARDS_ORDER_DB_PASSWORD", "secret")));
        sources.addLast(new MapPropertySource("application", Map.of("eventsql.shards.order_db.url", PRODUCTION)));

        String prefix = "variable" + System.nanoTime(); // new if the test is repeated
        new OwnShards(EmbeddedServer.get(false), prefix).replace(environment);

        assertThat(environment.getProperty("eventsql.shards.order_db.url")).contains(prefix + "_s0");
        assertThat(environment.getProperty("eventsql.shards.order.url")).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"eventsql.shards.first", "eventsql.shards.First_Shard", "eventsql.shards[first.shard]"})
    void replace_poolConnectsWithoutAUrl_namesTheProperty(String shard) {
        String property = shard + ".hikari.data-source-class-name";
        Map<String, Object> properties = Map.of(property, "org.postgresql.ds.PGSimpleDataSource");
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().addLast(new MapPropertySource("application", properties));

        assertThatThrownBy(() -> new OwnShards(EmbeddedServer.get(false), "refused").replace(environment))
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .hasMessageContaining(property)
                .hasMessageContaining("@EmbeddedEventSql replaces only databases with a URL");
    }
}
