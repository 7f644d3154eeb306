package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.StreamSpec;
import io.eventsql.spring.fixture.TestServer;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** The transaction managers and data sources that the template can join, and those it cannot. */
class TemplateTransactionManagersIT extends TemplateFixture {
    @Test
    void publish_readOnly_isRejectedAndTheTransactionContinues() {
        run(app -> {
            TransactionTemplate readOnly = app.transaction();
            readOnly.setReadOnly(true);

            readOnly.executeWithoutResult(status -> {
                assertThatThrownBy(() -> app.events().publish("orders", "x"))
                        .isInstanceOf(TransactionNotJoinableException.class)
                        .hasMessageContaining("orders")
                        .hasMessageContaining("read-only");
                assertThat(app.orders()).isEmpty();
            });

            assertThat(app.keysInTheEnd()).isEmpty();
        });
    }

    @Test
    void publish_unjoinableConfiguredAsDirect_isStoredAtOnce() {
        application()
                .withPropertyValues("eventsql.template.unjoinable-transaction=publish-directly")
                .run(context -> {
                    App app = new App(context);
                    new TransactionTemplate(new DataSourceTransactionManager(EVENTS_DB.dataSource()))
                            .executeWithoutResult(status -> {
                                app.events().publish("orders", "direct", "x");
                                assertThat(app.keys()).containsExactly("direct");
                                status.setRollbackOnly();
                            });
                    assertThat(app.keysInTheEnd()).containsExactly("direct");
                });
    }

    /** A pool may return connections without auto-commit, so that its absence alone does not indicate a transaction. */
    @Test
    void publish_connectionAccompaniesAnotherTransaction_isRejected() {
        DataSource dataSource = new DelegatingDataSource(newDatabase()) {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                connection.setAutoCommit(false);
                return connection;
            }
        };
        application(dataSource)
                .withBean(
                        "other",
                        PlatformTransactionManager.class,
                        () -> new DataSourceTransactionManager(EVENTS_DB.dataSource()))
                .run(context -> {
                    App app = new App(context);
                    app.transaction().executeWithoutResult(status -> {
                        assertThat(app.orders()).isEmpty();
                        assertThat(TransactionSynchronizationManager.hasResource(dataSource))
                                .isTrue();
                        assertThatThrownBy(() -> app.events().publish("orders", "x"))
                                .isInstanceOf(TransactionNotJoinableException.class);
                    });
                });
    }

    @Test
    void publish_managerThatIsNoBean_isJoined() {
        run(app -> {
            TransactionTemplate unknown = new TransactionTemplate(
                    new DataSourceTransactionManager(app.context().getBean(DataSource.class)));

            unknown.executeWithoutResult(status -> {
                app.events().publish("orders", "rolled back", "1");
                status.setRollbackOnly();
            });
            unknown.executeWithoutResult(status -> app.events().publish("orders", "committed", "2"));

            await().until(() -> !app.keys().isEmpty());
            assertThat(app.keysInTheEnd()).containsExactly("committed");
        });
    }

    /** Such a manager does not expose that there is a transaction. */
    @Test
    void publish_managerWithoutSynchronization_isJoined() {
        DataSource dataSource = newDatabase();
        application(dataSource)
                .withBean(PlatformTransactionManager.class, () -> {
                    DataSourceTransactionManager manager = new DataSourceTransactionManager(dataSource);
                    manager.setTransactionSynchronization(DataSourceTransactionManager.SYNCHRONIZATION_NEVER);
                    return manager;
                })
                .run(context -> {
                    App app = new App(context);
                    app.transaction().executeWithoutResult(status -> {
                        app.events().publish("orders", "rolled back", "1");
                        status.setRollbackOnly();
                    });
                    app.transaction()
                            .executeWithoutResult(status -> app.events().publish("orders", "committed", "2"));

                    await().until(() -> !app.keys().isEmpty());
                    assertThat(app.keysInTheEnd()).containsExactly("committed");
                });
    }

    @Test
    void publish_proxiedDataSource_isJoined() {
        DataSource own = newDatabase();
        for (DataSource proxy : List.of(
                new TransactionAwareDataSourceProxy(own),
                new LazyConnectionDataSourceProxy(own),
                new TransactionAwareDataSourceProxy(new LazyConnectionDataSourceProxy(own)))) {
            application(proxy).run(context -> {
                App app = new App(context);
                app.events().publish("orders", "before", "0");
                int before = app.keys().size();
                app.transaction().executeWithoutResult(status -> {
                    app.events().publish("orders", "rolled back", "1");
                    status.setRollbackOnly();
                });
                app.transaction().executeWithoutResult(status -> {
                    app.events().publish("orders", "committed", "2");
                    app.eventSql()
                            .createStream(StreamSpec.of("created_alongside").withPartitions(1));
                    assertThat(app.keys()).hasSize(before);
                });

                await().until(() -> app.keys().size() > before);
                assertThat(app.keysInTheEnd().subList(before, before + 1)).containsExactly("committed");
                assertThat(app.keys()).doesNotContain("rolled back");
            });
        }
    }

    @Test
    void publish_applicationsDatabaseIsNoShard_goesThroughItsOutbox() {
        application()
                .withPropertyValues(
                        "eventsql.shards.only.url=" + TestServer.newUrl(),
                        "eventsql.shards.only.username=" + EVENTS_DB.username(),
                        "eventsql.shards.only.password=" + EVENTS_DB.password())
                .run(context -> {
                    App app = new App(context);
                    app.transaction().executeWithoutResult(status -> {
                        app.jdbc().update("INSERT INTO orders VALUES ('1')");
                        app.events().publish("orders", "1", "committed");
                    });
                    app.transaction().executeWithoutResult(status -> {
                        app.events().publish("orders", "2", "rolled back");
                        status.setRollbackOnly();
                    });

                    await().until(() -> !app.keys().isEmpty());
                    await().until(() ->
                            app.eventSql().outbox().backlogs().stream().allMatch(backlog -> backlog.events() == 0));
                    assertThat(app.keys()).containsExactly("1");
                    assertThat(app.orders()).containsExactly("1");
                    assertThat(app.eventSql().shards()).hasSize(1);
                });
    }

    @Test
    void publish_applicationsDatabaseWithoutOutbox_isRejected() {
        application(POOLS.pool(TestServer.emptyDatabase()))
                .withPropertyValues(
                        "eventsql.shards.only.url=" + TestServer.newUrl(),
                        "eventsql.shards.only.username=" + EVENTS_DB.username(),
                        "eventsql.shards.only.password=" + EVENTS_DB.password(),
                        "eventsql.outbox.application-data-source=false")
                .run(context -> {
                    App app = new App(context);
                    app.transaction()
                            .executeWithoutResult(status -> assertThatThrownBy(
                                            () -> app.events().publish("orders", "1", "x"))
                                    .isInstanceOf(TransactionNotJoinableException.class));
                    assertThat(app.jdbc().queryForObject("SELECT to_regnamespace('eventsql') IS NULL", Boolean.class))
                            .isTrue();
                });
    }
}
