package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import io.eventsql.spring.fixture.TestPools;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What the template does in a transaction of {@code DataSourceTransactionManager}, and without one. */
class EventSqlTemplateIT {
    /** In the order in which Spring Boot would take them. */
    private static final Class<?>[] AUTO_CONFIGURATIONS = {
        JacksonAutoConfiguration.class,
        DataSourceTransactionManagerAutoConfiguration.class,
        JdbcTemplateAutoConfiguration.class,
        EventSqlAutoConfiguration.class,
        EventSqlTemplateAutoConfiguration.class
    };

    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static final TestPools POOLS = new TestPools();
    private static final TestPools SHARED_POOLS = new TestPools();
    private static EventsDb eventsDb;
    private static AnnotationConfigApplicationContext shared;

    record Order(String id, int total) {}

    @BeforeAll
    static void startServer() {
        eventsDb = EventsDb.start();
        shared = new AnnotationConfigApplicationContext();
        shared.registerBean(DataSource.class, () -> newDatabase(SHARED_POOLS));
        TestPropertyValues.of("eventsql.streams.orders.partitions=1", "eventsql.create-missing-streams=true")
                .applyTo(shared);
        shared.register(AUTO_CONFIGURATIONS);
        shared.refresh();
    }

    @AfterAll
    static void stopServer() {
        shared.close();
        SHARED_POOLS.close();
        eventsDb.close();
    }

    @AfterEach
    void closePools() {
        POOLS.close();
    }

    private static DataSource newDatabase() {
        return newDatabase(POOLS);
    }

    private static DataSource newDatabase(TestPools pools) {
        DataSource dataSource = pools.pool(eventsDb.createDatabase("template_" + DATABASES.incrementAndGet()));
        new JdbcTemplate(dataSource).execute("CREATE TABLE orders (id text PRIMARY KEY)");
        return dataSource;
    }

    private static ApplicationContextRunner application() {
        return application(newDatabase());
    }

    private static ApplicationContextRunner application(DataSource dataSource) {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(AUTO_CONFIGURATIONS))
                .withPropertyValues("eventsql.streams.orders.partitions=1")
                .withBean(DataSource.class, () -> dataSource);
    }

    /** With the application that most tests share, from where the last test has left it. */
    private static void run(Consumer<App> test) {
        App last = new App(shared, 0);
        await().until(() -> last.eventSql().outbox().backlogs().getFirst().events() == 0);
        last.jdbc().update("DELETE FROM orders");
        test.accept(new App(shared, last.stored().size()));
    }

    /**
     * What the tests use of an application.
     *
     * @param from the offset of the test's first event
     */
    record App(ApplicationContext context, long from) {
        App(ApplicationContext context) {
            this(context, 0);
        }

        EventSqlTemplate events() {
            return context.getBean(EventSqlTemplate.class);
        }

        EventSql eventSql() {
            return context.getBean(EventSql.class);
        }

        JdbcTemplate jdbc() {
            return context.getBean(JdbcTemplate.class);
        }

        TransactionTemplate transaction() {
            return new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        }

        TransactionTemplate transaction(int propagation) {
            TransactionTemplate template = transaction();
            template.setPropagationBehavior(propagation);
            return template;
        }

        List<String> orders() {
            return jdbc().queryForList("SELECT id FROM orders ORDER BY id", String.class);
        }

        List<StoredEvent> stored() {
            return eventSql().read(new EventPosition("orders", 0, 0, from), 1_000);
        }

        List<String> keys() {
            return stored().stream().map(StoredEvent::key).toList();
        }

        /** The keys once nothing waits in the outbox. */
        List<String> keysInTheEnd() {
            await().until(() -> eventSql().outbox().backlogs().getFirst().events() == 0);
            return keys();
        }
    }

    @Test
    void publish_withoutTransaction_isStoredAtOnceAsJson() {
        run(app -> {
            app.events().publish("orders", "4711", new Order("4711", 3));

            StoredEvent stored = app.stored().getFirst();
            assertThat(stored.key()).isEqualTo("4711");
            assertThat(stored.text()).isEqualTo("{\"id\":\"4711\",\"total\":3}");
            assertThat(stored.headers()).containsExactly(Map.entry("content-type", "application/json"));
        });
    }

    @Test
    void publish_tooLarge_namesTheProperty() {
        application().withPropertyValues("eventsql.max-event-bytes=10B").run(context -> {
            App app = new App(context);
            assertThatThrownBy(() -> app.events().publish("orders", "more than ten bytes"))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("eventsql.max-event-bytes");
            app.transaction()
                    .executeWithoutResult(
                            status -> assertThatThrownBy(() -> app.events().publish("orders", "more than ten bytes"))
                                    .isInstanceOf(InvalidInputException.class)
                                    .hasMessageContaining("eventsql.max-event-bytes"));
        });
    }

    @Test
    void publish_committed_isStoredOnce() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.jdbc().update("INSERT INTO orders VALUES ('1')");
                app.events().publish("orders", "1", new Order("1", 1));
                app.events().publish("orders", "2", new Order("2", 1));
                assertThat(app.keys()).isEmpty();
            });

            await().until(() -> app.keys().size() >= 2);
            assertThat(app.keysInTheEnd()).containsExactly("1", "2");
            assertThat(app.orders()).containsExactly("1");
        });
    }

    @Test
    void publish_rolledBack_isNeverStored() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.jdbc().update("INSERT INTO orders VALUES ('1')");
                app.events().publish("orders", "1", new Order("1", 1));
                status.setRollbackOnly();
            });

            assertThat(app.keysInTheEnd()).isEmpty();
            assertThat(app.orders()).isEmpty();
        });
    }

    @Test
    void publishAll_committed_keepsTheOrder() {
        run(app -> {
            List<OutgoingEvent> events = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                events.add(OutgoingEvent.of("key" + i, new Order("" + i, i)).withHeader("number", "" + i));
            }

            app.transaction().executeWithoutResult(status -> app.events().publishAll("orders", events));
            app.events().publishAll("orders", List.of());

            await().until(() -> app.keys().size() >= 100);
            assertThat(app.keys())
                    .isEqualTo(events.stream().map(OutgoingEvent::key).toList());
            assertThat(app.stored().get(42).headers()).containsEntry("number", "42");
        });
    }

    @Test
    void publish_manyInOneTransaction_tellsTheRelayOnce() {
        run(app -> app.transaction().executeWithoutResult(status -> {
            app.events().publish("orders", "a");
            app.events().publish("orders", "b");

            assertThat(TransactionSynchronizationManager.getSynchronizations()).hasSize(1);
        }));
    }

    @Test
    void publish_nestedRolledBack_onlyTheOuterIsStored() {
        run(app -> {
            app.transaction().executeWithoutResult(outer -> {
                app.events().publish("orders", "outer", "1");
                app.transaction(TransactionDefinition.PROPAGATION_NESTED).executeWithoutResult(nested -> {
                    app.jdbc().update("INSERT INTO orders VALUES ('nested')");
                    app.events().publish("orders", "nested", "2");
                    nested.setRollbackOnly();
                });
                app.transaction(TransactionDefinition.PROPAGATION_NESTED)
                        .executeWithoutResult(nested -> app.events().publish("orders", "kept", "3"));
            });

            await().until(() -> app.keys().size() >= 2);
            assertThat(app.keysInTheEnd()).containsExactly("outer", "kept");
            assertThat(app.orders()).isEmpty();
        });
    }

    @Test
    void publish_requiresNewInsideARolledBack_onlyTheInnerIsStored() {
        run(app -> {
            app.transaction().executeWithoutResult(outer -> {
                app.events().publish("orders", "outer", "1");
                app.transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                        .executeWithoutResult(inner -> app.events().publish("orders", "inner", "2"));
                app.events().publish("orders", "outer again", "3");
                outer.setRollbackOnly();
            });

            await().until(() -> !app.keys().isEmpty());
            assertThat(app.keysInTheEnd()).containsExactly("inner");
        });
    }

    @Test
    void publish_requiresNewRolledBack_onlyTheOuterIsStored() {
        run(app -> {
            app.transaction().executeWithoutResult(outer -> {
                app.events().publish("orders", "outer", "1");
                app.transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW).executeWithoutResult(inner -> {
                    app.events().publish("orders", "inner", "2");
                    inner.setRollbackOnly();
                });
            });

            await().until(() -> !app.keys().isEmpty());
            assertThat(app.keysInTheEnd()).containsExactly("outer");
        });
    }

    @Test
    void publish_whileTheTransactionIsSuspended_isStoredAtOnce() {
        run(app -> app.transaction().executeWithoutResult(outer -> {
            app.transaction(TransactionDefinition.PROPAGATION_NOT_SUPPORTED)
                    .executeWithoutResult(none -> app.events().publish("orders", "suspended", "1"));
            assertThat(app.keys()).containsExactly("suspended");
            outer.setRollbackOnly();
        }));
    }

    @Test
    void publish_inCallbacks_joinsBeforeTheCommitAndIsStoredAtOnceBehindIt() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.jdbc().update("INSERT INTO orders VALUES ('1')");
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void beforeCommit(boolean readOnly) {
                        app.events().publish("orders", "before commit", "1");
                        assertThat(app.keys()).isEmpty();
                    }

                    @Override
                    public void afterCommit() {
                        app.events().publish("orders", "after commit", "2");
                        assertThat(app.keys()).contains("after commit");
                        app.transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                                .executeWithoutResult(inner -> {
                                    app.events().publish("orders", "rolled back", "3");
                                    inner.setRollbackOnly();
                                });
                    }

                    @Override
                    public void afterCompletion(int status) {
                        app.events().publish("orders", "after completion", "4");
                        assertThat(app.keys()).contains("after completion");
                    }
                });
            });

            await().until(() -> app.keys().size() >= 3);
            assertThat(app.keysInTheEnd())
                    .containsExactlyInAnyOrder("before commit", "after commit", "after completion");
        });
    }

    @Test
    void publish_behindARollback_isStoredAtOnce() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.events().publish("orders", "rolled back", "1");
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCompletion(int status) {
                        app.events().publish("orders", "failed", "2");
                        assertThat(app.keys()).containsExactly("failed");
                    }
                });
                status.setRollbackOnly();
            });

            assertThat(app.keysInTheEnd()).containsExactly("failed");
        });
    }

    @Test
    void publish_readOnly_isRefusedAndTheTransactionGoesOn() {
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
    void publish_inATransactionOfAnotherDatabase_isRefusedWithAdvice() {
        run(app -> new TransactionTemplate(new DataSourceTransactionManager(eventsDb.dataSource()))
                .executeWithoutResult(status -> {
                    assertThatThrownBy(() -> app.events().publish("orders", "x"))
                            .isInstanceOf(TransactionNotJoinableException.class)
                            .hasMessageContaining("none of EventSQL's databases")
                            .hasMessageContaining("outsideTransaction()");
                    assertThatThrownBy(() -> app.events().publishAll("orders", List.of(OutgoingEvent.of("x"))))
                            .isInstanceOf(TransactionNotJoinableException.class);
                    assertThat(app.keys()).isEmpty();
                }));
    }

    @Test
    void publish_unjoinableToBeDirect_isStoredAtOnce() {
        application()
                .withPropertyValues("eventsql.template.unjoinable-transaction=publish-directly")
                .run(context -> {
                    App app = new App(context);
                    new TransactionTemplate(new DataSourceTransactionManager(eventsDb.dataSource()))
                            .executeWithoutResult(status -> {
                                app.events().publish("orders", "direct", "x");
                                assertThat(app.keys()).containsExactly("direct");
                                status.setRollbackOnly();
                            });
                    assertThat(app.keysInTheEnd()).containsExactly("direct");
                });
    }

    /** A pool may hand out connections that are not in autocommit mode: then that alone does not say that one is committed. */
    @Test
    void publish_connectionOnlyAccompaniesAnotherTransaction_isRefused() {
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
                        () -> new DataSourceTransactionManager(eventsDb.dataSource()))
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

    /** Such a manager does not even say that there is a transaction. */
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
                    app.eventSql().createStream(StreamSpec.of("created_beside"));
                    assertThat(app.keys()).hasSize(before);
                });

                await().until(() -> app.keys().size() > before);
                assertThat(app.keysInTheEnd().subList(before, before + 1)).containsExactly("committed");
                assertThat(app.keys()).doesNotContain("rolled back");
            });
        }
    }

    @Test
    void outsideTransaction_rolledBack_staysStored() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.events().outsideTransaction().publish("orders", "audit", "1");
                app.events().outsideTransaction().publishAll("orders", List.of(OutgoingEvent.of("audit2", "2")));
                app.events()
                        .outsideTransaction()
                        .publishAsync("orders", "audit3", "3")
                        .join();
                assertThat(app.keys()).containsExactly("audit", "audit2", "audit3");
                status.setRollbackOnly();
            });

            assertThat(app.keysInTheEnd()).containsExactly("audit", "audit2", "audit3");
        });
    }

    @Test
    void publishAsync_inATransaction_isRefused() {
        run(app -> {
            assertThat(app.events().publishAsync("orders", "k", "1").join().offset())
                    .isEqualTo(app.from());
            assertThat(app.events()
                            .publishAllAsync("orders", List.of(OutgoingEvent.of("2"), OutgoingEvent.of("3")))
                            .join())
                    .hasSize(2);

            app.transaction().executeWithoutResult(status -> {
                assertThatThrownBy(() -> app.events().publishAsync("orders", "k", "x"))
                        .isInstanceOf(TransactionNotJoinableException.class)
                        .hasMessageContaining("publishAsync");
                assertThatThrownBy(() -> app.events().publishAllAsync("orders", List.of(OutgoingEvent.of("x"))))
                        .isInstanceOf(TransactionNotJoinableException.class);
            });

            assertThat(app.keys()).hasSize(3);
        });
    }

    @Test
    void publish_streamThatIsMissing_isCreated() {
        run(app -> {
            app.events().publish("invoices", "directly");
            app.transaction().executeWithoutResult(status -> app.events().publish("payments", "in a transaction"));

            assertThat(app.eventSql().streams()).contains(StreamSpec.of("invoices"), StreamSpec.of("payments"));
            assertThatThrownBy(() -> app.events().publish("No Stream", "x"))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("stream.name");
        });
    }

    @Test
    void publish_streamThatIsMissingAndStaysSo_isRefusedAndTheTransactionGoesOn() {
        application().run(context -> {
            App app = new App(context);
            app.transaction().executeWithoutResult(status -> {
                assertThatThrownBy(() -> app.events().publish("invoices", "x"))
                        .isInstanceOf(UnknownStreamException.class)
                        .hasMessageContaining("eventsql.streams[invoices].partitions=10")
                        .hasMessageContaining("eventsql.create-missing-streams=true");
                app.events().publish("orders", "known", "y");
            });

            await().until(() -> !app.keys().isEmpty());
            assertThat(app.keys()).containsExactly("known");
        });
    }

    @Test
    void publish_customizersAndSerializerOfTheApplication_areAsked() {
        application()
                .withBean(EventSerializer.class, UpperCase::new)
                .withBean(
                        "tenant",
                        OutgoingEventCustomizer.class,
                        () -> (stream, payload, event) -> event.withHeader("tenant", stream + payload))
                .withPropertyValues("eventsql.cloud-events.source=/shop")
                .run(context -> {
                    App app = new App(context);
                    app.events().publish("orders", "k", "text");

                    StoredEvent stored = app.stored().getFirst();
                    assertThat(stored.text()).isEqualTo("TEXT");
                    assertThat(stored.headers())
                            .containsEntry("tenant", "orderstext")
                            .containsEntry("ce_source", "/shop")
                            .containsEntry("ce_type", "String");
                });
    }

    static final class UpperCase extends PlainEventSerializer {
        @Override
        public Event serialize(String stream, OutgoingEvent event) {
            return Event.ofText(event.key(), event.payload().toString().toUpperCase(Locale.ROOT));
        }
    }

    @Test
    void publish_applicationsDatabaseIsNoShard_goesThroughItsOutbox() {
        eventsDb.createDatabase("template_shard");
        application()
                .withPropertyValues(
                        "eventsql.shards.only.url=" + eventsDb.jdbcUrl("template_shard"),
                        "eventsql.shards.only.username=" + eventsDb.username(),
                        "eventsql.shards.only.password=" + eventsDb.password())
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
    void publish_applicationsDatabaseWithoutOutbox_isRefused() {
        eventsDb.createDatabase("template_shard_alone");
        application()
                .withPropertyValues(
                        "eventsql.shards.only.url=" + eventsDb.jdbcUrl("template_shard_alone"),
                        "eventsql.shards.only.username=" + eventsDb.username(),
                        "eventsql.shards.only.password=" + eventsDb.password(),
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
