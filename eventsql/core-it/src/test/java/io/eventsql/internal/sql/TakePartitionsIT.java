package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.fixture.FunctionCalls;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import org.junit.jupiter.api.Test;

/** Goal: a member that takes many partitions of a stream that has grown reads what they wait for as often as for one. */
class TakePartitionsIT {
    private static final int PARTITIONS = 60;

    @Test
    void take_manyPartitions_readsTwiceWhatWaits() throws SQLException {
        FunctionCalls calls = FunctionCalls.inNewDatabase();
        try (HikariDataSource pool = TestCluster.pool(calls.database());
                EventSql eventSql = EventSql.builder(pool).build()) {
            eventSql.createStream(TestStreams.of("grown").withPartitions(2));
            eventSql.subscribe(ConsumerSpec.of("grown", "c"), event -> {}).close();
            eventSql.grow("grown", 7);
            eventSql.grow("grown", PARTITIONS);
            try (Connection transaction = calls.database().getConnection()) {
                transaction.setAutoCommit(false);
                assertThat(
                                Sql.query(
                                        transaction,
                                        "SELECT count(*) FROM eventsql.consumer c CROSS JOIN LATERAL eventsql.take_partitions_v1("
                                                + "NULL, c.consumer_id, gen_random_uuid(), interval '10 s', 100, '{}') WHERE c.name = 'c'"))
                        .containsExactly(Integer.toString(PARTITIONS));
                assertThat(Sql.query(
                                transaction,
                                "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'held_partitions_v1'"))
                        .containsExactly("2");
                transaction.rollback();
            }
        }
    }
}
