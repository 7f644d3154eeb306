package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import org.junit.jupiter.api.Test;

/** Goal: a role that may consume but create no tables gets the statements for an administrator, and works after them. */
class ContinuousAggregateRoleIT extends RolesFixture {
    private static final ContinuousAggregateSpec SPEC = ContinuousAggregateSpec.of("orders_per_minute", "orders")
            .withMeasure("n", event -> Integer.valueOf(event.text()));

    @Test
    void consumer_mayNotCreateTables_worksAfterTheScriptOfItsError() throws Exception {
        publish(owner, 0, 100);
        HikariDataSource pool = login("eventsql_consumer");
        EventSql consumer = open(pool);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> consumer.startContinuousAggregate(SPEC))
                .withMessageContaining("may not create the tables")
                .satisfies(e -> runAsAdmin(scriptIn(e)));
        try (ContinuousAggregate aggregate = consumer.startContinuousAggregate(SPEC)) {
            await().untilAsserted(() -> assertThat(Sql.query(pool, "SELECT sum(n_sum) FROM public.orders_per_minute"))
                    .containsExactly("4950"));
            aggregate.rebuild();
            await().until(() -> !aggregate.isRebuilding());
        }
        HikariDataSource another = login("eventsql_consumer");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> open(another).startContinuousAggregate(SPEC))
                .withMessageContaining("orders_per_minute__partials");
    }

    private static String scriptIn(Throwable e) {
        return e.getMessage().substring(e.getMessage().indexOf('\n'));
    }

    private void runAsAdmin(String script) throws Exception {
        Sql.execute(Roles.admin(database), script);
    }
}
