package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.BufferState;
import io.eventsql.EventSql;
import io.eventsql.spring.test.Shop.OrderPlaced;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
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
            "eventsql.shards[Second_Shard].url=" + ShardsIT.PRODUCTION
        })
class ShardsIT {
    /** Nothing listens on this port. */
    static final String PRODUCTION = "jdbc:postgresql://127.0.0.1:1/production";

    @DynamicPropertySource
    static void third(DynamicPropertyRegistry registry) {
        registry.add("eventsql.shards.third.url", () -> PRODUCTION);
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
        assertThat(eventSql.buffers()).extracting(BufferState::name).contains("first", "Second_Shard", "third");
        String own = jdbc.queryForObject("SELECT current_database()", String.class);
        assertThat(jdbc.queryForList("SELECT datname FROM pg_database WHERE datname LIKE '%shardsit%'", String.class))
                .containsExactlyInAnyOrder(own, own + "_s0", own + "_s1", own + "_s2");
    }

    @Test
    void replace_poolConnectsWithoutAUrl_namesTheProperty() {
        String property = "eventsql.shards.first.hikari.data-source-class-name";
        StandardEnvironment environment = new StandardEnvironment();
        environment
                .getPropertySources()
                .addLast(new MapPropertySource("application", Map.of(property, "org.postgresql.ds.PGSimpleDataSource")));

        assertThatThrownBy(() -> new OwnShards(EmbeddedServer.get(false), "refused").replace(environment))
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .hasMessageContaining(property)
                .hasMessageContaining("@EmbeddedEventSql replaces only databases with a URL");
    }
}
