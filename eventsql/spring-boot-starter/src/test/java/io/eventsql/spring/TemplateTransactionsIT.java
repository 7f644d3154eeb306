package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.ExpectedVersion;
import io.eventsql.VersionConflictException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** What commits and rollbacks mean for published events, nested and suspended transactions included. */
class TemplateTransactionsIT extends TemplateFixture {
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
    void publish_versionExpected_isComparedInsideAndOutsideOfTransactions() {
        run(app -> {
            OutgoingEvent event = OutgoingEvent.of("a", new Order("1", 1));
            app.events().publish("accounts", event, ExpectedVersion.NONE);
            assertThatExceptionOfType(VersionConflictException.class)
                    .isThrownBy(() -> app.events().publish("accounts", event, ExpectedVersion.NONE));

            app.transaction()
                    .executeWithoutResult(status -> app.events().publish("accounts", event, ExpectedVersion.of(1)));
            assertThatExceptionOfType(VersionConflictException.class)
                    .isThrownBy(() -> app.transaction()
                            .executeWithoutResult(
                                    status -> app.events().publish("accounts", event, ExpectedVersion.of(1))))
                    .satisfies(e -> assertThat(e.actualVersion()).isEqualTo(2));
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
    void schedule_inATransaction_isPartOfItAndOutsideImmediate() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.events().schedule("orders", "no", new Order("no", 1), Instant.now());
                status.setRollbackOnly();
            });
            app.transaction().executeWithoutResult(status -> {
                assertThat(app.events().schedule("orders", "1", new Order("1", 1), Instant.now()))
                        .isNotNull();
                assertThat(app.keys()).isEmpty();
            });
            app.events()
                    .schedule("orders", "2", new Order("2", 1), Instant.now().plusMillis(10));

            await().until(() -> app.keys().size() >= 2);
            assertThat(app.keysInTheEnd()).containsExactlyInAnyOrder("1", "2");
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
    void publish_severalInOneTransaction_signalTheRelayOnce() {
        run(app -> app.transaction().executeWithoutResult(status -> {
            app.events().publish("orders", "a");
            app.events().publish("orders", "b");

            assertThat(TransactionSynchronizationManager.getSynchronizations())
                    .filteredOn(callback -> callback.getClass().getSimpleName().equals("CommitSignal"))
                    .hasSize(1);
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
    void publish_inCallbacks_joinsBeforeTheCommitAndIsStoredAtOnceAfterIt() {
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
    void publish_afterARollback_isStoredAtOnce() {
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
    void publishAsync_inACallbackBeforeTheCommit_rollsBackAndCallbacksAfterItPublishAtOnce() {
        run(app -> {
            AtomicReference<Optional<EventPosition>> afterCompletion = new AtomicReference<>();
            assertThatExceptionOfType(TransactionNotJoinableException.class)
                    .isThrownBy(() -> app.transaction().executeWithoutResult(status -> {
                        app.jdbc().update("INSERT INTO orders VALUES ('1')");
                        TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                            @Override
                            public void beforeCommit(boolean readOnly) {
                                app.events()
                                        .publishAsync("orders", "unclear", "1")
                                        .join();
                            }

                            @Override
                            public void afterCompletion(int status) {
                                afterCompletion.set(app.events().publish("orders", "failed", "2"));
                            }
                        });
                    }));

            assertThat(app.orders()).isEmpty();
            assertThat(afterCompletion.get())
                    .as("position, empty inside a transaction")
                    .isPresent();
            assertThat(app.keysInTheEnd()).containsExactly("failed");
        });
    }
}
