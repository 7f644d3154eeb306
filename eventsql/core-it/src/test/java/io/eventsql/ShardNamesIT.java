package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Shards keep the names that the application gives them. */
class ShardNamesIT {
    private static TestCluster cluster;

    @BeforeAll
    static void openCluster() {
        cluster = TestCluster.ofShards(2);
    }

    @AfterAll
    static void closeCluster() {
        cluster.close();
    }

    private Map<String, DataSource> named(String first, DataSource firstShard, String second, DataSource secondShard) {
        Map<String, DataSource> shards = new LinkedHashMap<>();
        shards.put(first, firstShard);
        shards.put(second, secondShard);
        return shards;
    }

    private static List<String> names(EventSql eventSql) {
        return eventSql.shards().stream().map(ShardInfo::name).toList();
    }

    @Test
    void builder_withoutNames_usesTheRecordedOnes() {
        try (EventSql eventSql = EventSql.builder(cluster.dataSources()).build()) {
            assertThat(names(eventSql)).containsExactly("shard0", "shard1");
        }
    }

    @Test
    void builder_withNames_usesThemEverywhere() {
        DataSource first = cluster.dataSources().get(0);
        DataSource second = cluster.dataSources().get(1);
        try (EventSql eventSql =
                EventSql.builder(named("eu-west", first, "us.east", second)).build()) {
            assertThat(names(eventSql)).containsExactly("eu-west", "us.east");
            assertThat(eventSql.buffers()).extracting(BufferState::name).containsExactly("eu-west", "us.east");
            assertThat(eventSql.outbox().names()).containsExactly("eu-west", "us.east");
            assertThat(eventSql.outbox().backlog("us.east").database()).isSameAs(second);
        }
        // In another order and with other names: numbers are recorded, names are not.
        try (EventSql eventSql =
                EventSql.builder(named("b", second, "a", first)).build()) {
            assertThat(names(eventSql)).containsExactly("a", "b");
            assertThat(eventSql.shards().getFirst().dataSource()).isSameAs(first);
        }
    }

    @Test
    void builder_shardUnavailable_getsItsNameOnceAvailable() {
        cluster.open().close();
        SwitchableDataSource second =
                new SwitchableDataSource(cluster.dataSources().get(1));
        second.setAvailable(false);
        try (EventSql eventSql = EventSql.builder(
                        named("a", cluster.dataSources().get(0), "b", second))
                .build()) {
            assertThat(names(eventSql)).containsExactly("a");
            second.setAvailable(true);
            await().untilAsserted(() -> assertThat(names(eventSql)).containsExactly("a", "b"));
        }
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(
            strings = {
                "",
                " ",
                "a b",
                "a/b",
                "a\n",
                "ä",
                "1234567890123456789012345678901234567890123456789012345678901"
            })
    void builder_invalidName_isRejected(String name) {
        Map<String, DataSource> shards = new LinkedHashMap<>();
        shards.put(name, cluster.dataSources().get(0));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> EventSql.builder(shards))
                .withMessageStartingWith("shards must be named with")
                .satisfies(e -> assertThat(e.field()).isEqualTo("shards"));
    }
}
