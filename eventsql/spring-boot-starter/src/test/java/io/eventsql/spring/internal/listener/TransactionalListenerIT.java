package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.InvalidListenerException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.interceptor.TransactionAspectSupport;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** Listeners in transactions of the application's JDBC transaction manager: effects and offset together. */
class TransactionalListenerIT extends ListenerFixture {
    private static final int EVENTS = 20;

    private JdbcTemplate jdbc;

    @BeforeEach
    void createTable() {
        jdbc = new JdbcTemplate(pool);
        // No key: an effect that happens twice is seen.
        jdbc.execute(
                "CREATE TABLE IF NOT EXISTS effect (stream text, text text, at bigint GENERATED ALWAYS AS IDENTITY)");
        jdbc.execute("CREATE TABLE IF NOT EXISTS note (text text)");
        jdbc.execute("TRUNCATE effect, note");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement(proxyTargetClass = true)
    static class Annotations {}

    ApplicationContextRunner transactional() {
        return application()
                .withConfiguration(AutoConfigurations.of(
                        DataSourceTransactionManagerAutoConfiguration.class, JdbcTemplateAutoConfiguration.class))
                .withUserConfiguration(Annotations.class)
                .withBean(Stock.class)
                .withBean(Notes.class);
    }

    private List<String> effects() {
        return jdbc.queryForList("SELECT text FROM effect WHERE stream = ? ORDER BY at", String.class, stream);
    }

    private static String[] texts(int events) {
        return IntStream.range(0, events).mapToObj(Integer::toString).toArray(String[]::new);
    }

    /** Writes an effect in the current transaction, if any. */
    @Transactional
    static class Stock {
        @Autowired
        private JdbcTemplate jdbc;

        void take(StoredEvent event) {
            jdbc.update("INSERT INTO effect (stream, text) VALUES (?, ?)", event.stream(), event.text());
        }

        void fail() {
            throw new IllegalStateException("in a transaction");
        }
    }

    /** Writes that a rollback must not undo. */
    static class Notes {
        @Autowired
        private JdbcTemplate jdbc;

        @Transactional(propagation = Propagation.REQUIRES_NEW)
        void write(String text) {
            jdbc.update("INSERT INTO note VALUES (?)", text);
        }
    }

    static class FailsInBetween {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Stock stock;

        @Autowired
        private Notes notes;

        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true)
        void on(StoredEvent event) {
            assertThat(TransactionSynchronizationManager.isActualTransactionActive())
                    .isTrue();
            notes.write(event.text());
            stock.take(event);
            switch (calls.incrementAndGet() % 4) {
                case 1 -> throw new IllegalStateException("after the write");
                case 2 -> throw new AssertionError("an error after the write");
                default -> {}
            }
        }
    }

    @Test
    void single_failsAfterItsWrites_effectsAreCommittedOnce() {
        publish(texts(EVENTS));
        transactional().withBean(FailsInBetween.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly(texts(EVENTS));
            int calls = context.getBean(FailsInBetween.class).calls.get();
            assertThat(calls).isGreaterThan(EVENTS);
            assertThat(jdbc.queryForObject("SELECT count(*) FROM note", Integer.class))
                    .as("in transactions of their own")
                    .isEqualTo(calls);
        });
    }

    static class WithConnection {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Stock stock;

        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true, batch = true, batchSize = "7")
        void on(List<StoredEvent> events, Connection connection) throws SQLException {
            for (StoredEvent event : events) {
                if (event.offset() % 2 == 0) {
                    stock.take(event);
                    continue;
                }
                try (PreparedStatement insert =
                        connection.prepareStatement("INSERT INTO effect (stream, text) VALUES (?, ?)")) {
                    insert.setString(1, event.stream());
                    insert.setString(2, event.text());
                    insert.execute();
                }
            }
            if (calls.incrementAndGet() == 2) {
                throw new SQLException("after the writes");
            }
        }
    }

    @Test
    void batch_withConnectionAndTemplate_effectsAreCommittedOnce() {
        publish(texts(EVENTS));
        transactional().withBean(WithConnection.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly(texts(EVENTS));
            assertThat(context.getBean(WithConnection.class).calls).hasValueGreaterThan(3);
        });
    }

    static class LosesItsConnection {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Stock stock;

        @Autowired
        private JdbcTemplate jdbc;

        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true, maxAttempts = "1")
        void on(StoredEvent event) {
            stock.take(event);
            if (calls.incrementAndGet() % 3 == 2) {
                jdbc.queryForObject("SELECT pg_terminate_backend(pg_backend_pid())", Boolean.class);
            }
        }
    }

    @Test
    void connection_lostInTheMethod_isNoAttemptAndEffectsAreCommittedOnce() {
        publish(texts(6));
        transactional().withBean(LosesItsConnection.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly(texts(6));
            assertThat(context.getBean(LosesItsConnection.class).calls).hasValueGreaterThan(7);
        });
    }

    record Amount(int value) {}

    static class BatchOfNumbers {
        @Autowired
        private JdbcTemplate jdbc;

        @EventSqlListener(
                stream = "${stream}",
                consumer = "c",
                transactional = true,
                batch = true,
                failurePolicy = "dead-letter")
        void on(List<Amount> amounts, List<StoredEvent> events) {
            amounts.forEach(amount -> jdbc.update(
                    "INSERT INTO effect (stream, text) VALUES (?, ?)",
                    events.getFirst().stream(),
                    Integer.toString(amount.value())));
        }
    }

    @Test
    void batch_withInvalidPayload_otherEffectsAreCommittedOnce() {
        publish("{\"value\":0}", "{\"value\":1}", "no JSON", "{\"value\":3}");
        transactional().withBean(BatchOfNumbers.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly("0", "1", "3");
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).hasSize(1);
        });
    }

    static class MarksForRollback {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Stock stock;

        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true)
        void on(StoredEvent event) {
            stock.take(event);
            if (calls.incrementAndGet() == 2) {
                try {
                    stock.fail();
                } catch (IllegalStateException e) {
                    assertThat(e).hasMessage("in a transaction"); // caught, but the transaction is marked
                }
            }
        }
    }

    @Test
    void transaction_rollbackOnly_isAFailureOfTheEvent() {
        publish("0", "1", "2");
        transactional().withBean(MarksForRollback.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly("0", "1", "2");
            assertThat(context.getBean(MarksForRollback.class).calls).hasValue(4);
        });
    }

    /** A listener with {@code @Transactional} joins the transaction. */
    static class AnnotatedTwice {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Stock stock;

        @Transactional
        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true)
        public void on(StoredEvent event) {
            stock.take(event);
            if (calls.incrementAndGet() == 1) {
                TransactionAspectSupport.currentTransactionStatus().setRollbackOnly();
            }
        }
    }

    @Test
    void method_withTransactional_joins() {
        publish("0", "1");
        transactional().withBean(AnnotatedTwice.class).run(context -> {
            awaitLag(0);
            assertThat(effects()).containsExactly("0", "1");
        });
    }

    static class ForwardsTo {
        final AtomicInteger calls = new AtomicInteger();
        private final EventSqlTemplate events;

        ForwardsTo(EventSqlTemplate events) {
            this.events = events;
        }

        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true)
        void on(StoredEvent event) {
            events.publish(event.stream() + "_copy", event.key(), event.text());
            if (calls.incrementAndGet() % 2 == 1) {
                throw new IllegalStateException("after the publish");
            }
        }
    }

    @Test
    void publish_inTheMethod_happensOnce() {
        publish(texts(5));
        transactional()
                .withBean(ForwardsTo.class)
                .withPropertyValues("eventsql.streams." + stream + "_copy.partitions=1")
                .run(context -> {
                    awaitLag(0);
                    await().until(() -> eventSql.outbox().backlogs().getFirst().events() == 0);
                    assertThat(eventSql.read(new EventPosition(stream + "_copy", 0, 0, 0), 100))
                            .extracting(StoredEvent::text)
                            .containsExactly(texts(5));
                });
    }

    /** A data source with a proxy. */
    @ParameterizedTest
    @ValueSource(strings = {"aware", "lazy"})
    void dataSource_wrapped_isTheSame(String kind) {
        publish(texts(5));
        DataSource wrapped = kind.equals("lazy")
                ? new LazyConnectionDataSourceProxy(pool)
                : new TransactionAwareDataSourceProxy(pool);
        applicationWithoutDataSource()
                .withConfiguration(AutoConfigurations.of(
                        DataSourceTransactionManagerAutoConfiguration.class, JdbcTemplateAutoConfiguration.class))
                .withUserConfiguration(Annotations.class)
                .withBean(Stock.class)
                .withBean(Notes.class)
                .withBean(FailsInBetween.class)
                .withBean("dataSource", DataSource.class, () -> wrapped, bean -> bean.setDestroyMethodName(""))
                .run(context -> {
                    awaitLag(0);
                    assertThat(effects()).containsExactly(texts(5));
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoDatabases {
        static HikariDataSource other;

        @Bean
        DataSourceTransactionManager otherTransactions() {
            return new JdbcTransactionManager(other);
        }

        @Bean
        DataSourceTransactionManager ownTransactions(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }
    }

    static class Named {
        @EventSqlListener(stream = "${stream}", consumer = "c", transactional = true, transactionManager = "${manager}")
        void on(StoredEvent event) {}
    }

    @Test
    void manager_ofAnotherDatabase_failsTheStart() {
        try (HikariDataSource other = pool(newDatabase())) {
            TwoDatabases.other = other;
            ApplicationContextRunner two =
                    application().withUserConfiguration(TwoDatabases.class).withBean(Named.class);
            two.withPropertyValues("manager=otherTransactions")
                    .run(context -> assertThat(context)
                            .getFailure()
                            .isInstanceOf(InvalidListenerException.class)
                            .hasMessageContaining("bean '")
                            .hasMessageContaining("Named.on(StoredEvent)")
                            .hasMessageContaining(
                                    "the DataSource of 'otherTransactions' (JdbcTransactionManager) is not that of the stream's"
                                            + " database"));
            two.withPropertyValues("manager=")
                    .run(context -> assertThat(context)
                            .getFailure()
                            .isInstanceOf(InvalidListenerException.class)
                            .hasMessageContaining("several transaction managers or none"));
            two.withPropertyValues("manager=unknown")
                    .run(context -> assertThat(context)
                            .getFailure()
                            .hasMessageContaining("names a transaction manager that does not exist: 'unknown'"));
            two.withPropertyValues("manager=ownTransactions")
                    .run(context -> assertThat(context).hasNotFailed());
        }
    }

    @Test
    void manager_none_failsTheStart() {
        application()
                .withPropertyValues("manager=")
                .withBean(Named.class)
                .run(context -> assertThat(context).getFailure().isInstanceOf(InvalidListenerException.class));
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoShards {
        static HikariDataSource first;
        static HikariDataSource second;

        @Bean(destroyMethod = "")
        @EventSqlDataSource
        DataSource firstShard() {
            return first;
        }

        @Bean(destroyMethod = "")
        @EventSqlDataSource
        DataSource secondShard() {
            return second;
        }

        @Bean
        PlatformTransactionManager firstTransactions() {
            return new JdbcTransactionManager(first);
        }

        @Bean
        PlatformTransactionManager secondTransactions() {
            return new JdbcTransactionManager(second);
        }
    }

    static class OnShards {
        @EventSqlListener(
                stream = "sharded",
                consumer = "c",
                transactional = true,
                transactionManager = {"firstTransactions", "${second}"})
        void on(StoredEvent event, Connection connection) throws SQLException {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
                insert.setString(1, event.text());
                insert.execute();
            }
        }
    }

    @Test
    void shards_needAManagerEach() {
        try (HikariDataSource first = pool(newDatabase());
                HikariDataSource second = pool(newDatabase())) {
            TwoShards.first = first;
            TwoShards.second = second;
            for (DataSource shard : List.of(first, second)) {
                new JdbcTemplate(shard).execute("CREATE TABLE effect (text text)");
            }
            ApplicationContextRunner sharded = applicationWithoutDataSource()
                    .withPropertyValues("eventsql.streams.sharded.partitions=1")
                    .withUserConfiguration(TwoShards.class)
                    .withBean(OnShards.class);
            sharded.withPropertyValues("second=")
                    .run(context -> assertThat(context)
                            .getFailure()
                            .isInstanceOf(InvalidListenerException.class)
                            .hasMessageContaining("is not that of shard '")
                            .satisfies(e -> assertThat(((InvalidListenerException) e).action())
                                    .contains("is stored on 2 shards")));
            sharded.withPropertyValues("second=secondTransactions").run(context -> {
                EventSqlTemplate events = context.getBean(EventSqlTemplate.class);
                for (int key = 0; key < 20; key++) {
                    events.publish("sharded", "key-" + key, "text-" + key);
                }
                await().untilAsserted(() ->
                        assertThat(effects(first) + effects(second)).isEqualTo(20));
                assertThat(effects(first)).isBetween(1, 19);
            });
        }
    }

    private static int effects(DataSource shard) {
        return new JdbcTemplate(shard).queryForObject("SELECT count(*) FROM effect", Integer.class);
    }
}
