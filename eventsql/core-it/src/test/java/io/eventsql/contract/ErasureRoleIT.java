package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Goal: only the owner erases, and whom it has granted that. */
class ErasureRoleIT extends RolesFixture {
    @Test
    void erase_withoutTheRight_isRefused_andErasesNothing() throws Exception {
        publish(owner, 0, 50);
        HikariDataSource login = login("eventsql_publisher", "eventsql_relay", "eventsql_consumer", "eventsql_reader");
        EventSql application = open(login);
        assertThatThrownBy(() -> application.erase("orders", "k1"))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("erasures_v1");
        assertThat(read(owner, "orders", 50)).noneMatch(StoredEvent::isErased);

        Sql.execute(
                Roles.admin(database),
                "GRANT EXECUTE ON FUNCTION eventsql.begin_erasure_v1, eventsql.erase_step_v1, eventsql.erasures_v1,"
                        + " eventsql.begin_outbox_erasure_v1, eventsql.erase_outbox_step_v1, eventsql.outbox_erasure_v1"
                        + " TO eventsql_reader");
        assertThat(application.erase("orders", "k1").isDone()).isTrue();
        assertThat(read(owner, "orders", 50)).filteredOn(StoredEvent::isErased).hasSize(5);
    }

    /** An erasure is done when no other session can read the former values: also one of a superuser. */
    @Test
    void erase_sessionOfAnotherRoleHasAnOldSnapshot_isNotDone() throws Exception {
        publish(owner, 0, 50);
        HikariDataSource reader = login("eventsql_reader");
        for (DataSource other : List.of(Roles.admin(database), reader)) {
            try (Connection old = other.getConnection()) {
                old.setAutoCommit(false);
                old.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                String pid = Sql.query(old, "SELECT pg_backend_pid()").getFirst();
                Erasure erasure = owner.erase(ErasureSpec.of("orders", "k1").withTimeout(Duration.ZERO));
                assertThat(erasure.isDone()).isFalse();
                assertThat(erasure.parts().getFirst().waitingFor()).startsWith("the session with pid " + pid);
                old.rollback();
            }
        }
        assertThat(owner.erase("orders", "k1").isDone()).isTrue();
    }
}
