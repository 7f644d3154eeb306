package io.eventsql.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.assertj.core.api.AbstractStringAssert;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.LoggerFactory;

/** The number of connections needed and the warnings; the pools are never connected. */
class PoolCheckTest {
    private static final int PARTITIONS = 10;
    private static final ConsumerSpec SPEC = ConsumerSpec.of("orders", "mailer");

    private final Logger logger = (Logger) LoggerFactory.getLogger(PoolCheck.class);
    private final ListAppender<ILoggingEvent> appender = new ListAppender<>();

    @BeforeEach
    void captureWarnings() {
        appender.start();
        logger.addAppender(appender);
    }

    @AfterEach
    void releaseLogger() {
        logger.detachAppender(appender);
    }

    private List<String> warnings() {
        List<String> warnings = appender.list.stream()
                .filter(event -> event.getLevel() == Level.WARN)
                .map(ILoggingEvent::getFormattedMessage)
                .toList();
        appender.list.clear();
        return warnings;
    }

    private static HikariDataSource pool(int size) {
        HikariDataSource pool = new HikariDataSource();
        pool.setMaximumPoolSize(size);
        return pool;
    }

    private static PoolCheck check(Map<String, DataSource> outboxes, DataSource... shards) {
        Map<String, DataSource> named = new LinkedHashMap<>();
        for (DataSource shard : shards) {
            named.put("db" + named.size(), shard);
        }
        return new PoolCheck(Settings.defaults(), () -> named, outboxes, stream -> PARTITIONS, false);
    }

    private static StartedMember start(PoolCheck check, ConsumerSpec spec, boolean transactional) {
        StartedMember member = new StartedMember(spec);
        assertThat(check.start(spec, transactional, () -> member)).isEqualTo(member);
        return member;
    }

    @Test
    void check_oneShard_usesSixConnections() {
        check(Map.of(), pool(6)).check();
        assertThat(warnings()).isEmpty();
        check(Map.of(), pool(5)).check();
        assertThat(warnings())
                .singleElement()
                .asString()
                .startsWith("The pool of shard db0 has 5 connections, but up to 6 are used at the same time,")
                .contains("2 to append, 1 to send signals, 1 for background work, 2 to relay the outbox.")
                .contains("Increase its maximum size");
    }

    @Test
    void check_replicas_countsTheirConnectionsToThePrimary() {
        HikariDataSource pool = pool(6);
        new PoolCheck(Settings.defaults(), () -> Map.of("db0", pool), Map.of(), stream -> PARTITIONS, true).check();
        assertThat(warnings())
                .singleElement()
                .asString()
                .contains("up to 7 are used at the same time", "1 to measure the lag of replicas");
    }

    @Test
    void check_again_warnsOnce() {
        PoolCheck check = check(Map.of(), pool(5));
        check.check();
        check.check();
        assertThat(warnings()).hasSize(1);
    }

    @Test
    void check_threeShardsAndAnOutbox_countsTheTransfers() {
        check(Map.of("outbox0", pool(4)), pool(10), pool(11), pool(11)).check();
        assertThat(warnings())
                .satisfiesExactly(
                        shard -> assertThat(shard)
                                .startsWith(
                                        "The pool of shard db0 has 10 connections, but up to 11 are used at the same time,")
                                .contains("5 to transfer events of outboxes"),
                        outbox -> assertThat(outbox)
                                .startsWith(
                                        "The pool of outbox outbox0 has 4 connections, but up to 5 are used at the same time,")
                                .contains("2 to relay the outbox, 3 to transfer events of outboxes."));
    }

    @Test
    void start_consumer_usesFourMore() {
        PoolCheck check = check(Map.of(), pool(9));
        check.check();
        assertThat(warnings()).isEmpty();
        start(check, SPEC, false);
        assertThat(warnings()).singleElement().asString().contains("up to 10 are used", "4 to consume");
        start(check, SPEC, false);
        assertThat(warnings()).as("members share these connections").isEmpty();
    }

    @Test
    void start_transactional_usesItsConcurrencyAtMostItsPartitions() {
        PoolCheck check = check(Map.of(), pool(17));
        start(check, SPEC, true);
        assertThat(warnings()).singleElement().asString().contains("up to 20 are used", "10 for transactional");
        start(check, SPEC.withConcurrency(3), true);
        assertThat(warnings()).singleElement().asString().contains("up to 23 are used", "13 for transactional");
        start(check, SPEC.withMaxPartitions(1), true);
        assertThat(warnings()).singleElement().asString().contains("up to 24 are used");
    }

    @Test
    void start_poolIsTooSmall_isRefusedWithTheSum() {
        assertRefused(check(Map.of(), pool(1)), false)
                .isEqualTo("dataSource[db0] is a pool of 1 connections, but at least 2 are needed, plus those of the"
                        + " application: 1 shared by publishing, relaying, fetching, committing offsets and renewing"
                        + " leases, 1 to listen for signals. Increase its maximum size, or lower concurrency or"
                        + " maxPartitions of the transactional consumers");
        start(check(Map.of(), pool(2)), SPEC, false);

        assertRefused(check(Map.of(), pool(20), pool(12)), true)
                .startsWith("dataSource[db1] is a pool of 12 connections, but at least 13 are needed")
                .contains("10 for transactional handlers, 1 to listen for signals of the outbox.");
        start(check(Map.of(), pool(13)), SPEC, true);
    }

    private static AbstractStringAssert<?> assertRefused(PoolCheck check, boolean transactional) {
        return assertThat(catchThrowableOfType(
                                InvalidInputException.class,
                                () -> check.start(SPEC, transactional, () -> {
                                    throw new AssertionError("it was started");
                                }))
                        .getMessage())
                .as("message");
    }

    @Test
    void start_afterRefusedFailedAndClosedOnes_doesNotCountThem() {
        PoolCheck check = check(Map.of(), pool(13));
        for (int i = 0; i < 3; i++) {
            StartedMember member = start(check, SPEC, true);
            assertRefused(check, true);
            member.close();
            assertThatIllegalStateException()
                    .isThrownBy(() -> check.start(SPEC, true, () -> {
                        throw new IllegalStateException("cannot start");
                    }));
        }
    }

    @Test
    void check_dataSourceWithoutPool_isNotReported() {
        PoolCheck check = check(Map.of(), new PGSimpleDataSource());
        check.check();
        start(check, SPEC, true);
        assertThat(warnings()).isEmpty();
    }

    @Test
    void check_unknownPool_isReportedOnce() {
        PoolCheck check = check(Map.of(), new WrappedDataSource(null));
        check.check();
        start(check, SPEC, true);
        assertThat(warnings())
                .singleElement()
                .asString()
                .startsWith("The size of the pool of shard db0 could not be determined");
    }

    @Test
    void check_wrappedPool_isUnwrapped() {
        check(Map.of(), new WrappedDataSource(pool(5))).check();
        assertThat(warnings()).hasSize(1);
    }

    @Test
    void check_poolBehindJdbcWrapper_isUnwrapped() {
        check(Map.of(), new TracingDataSource(pool(5))).check();
        assertThat(warnings()).singleElement().asString().startsWith("The pool of shard db0 has 5 connections");
    }

    /** Offers what it wraps by JDBC's own interface alone. */
    private static final class TracingDataSource extends PGSimpleDataSource {
        private static final long serialVersionUID = 1L;

        private final transient DataSource target;

        TracingDataSource(DataSource target) {
            this.target = target;
        }

        @Override
        public boolean isWrapperFor(Class<?> type) {
            return type.isInstance(target);
        }

        @Override
        public <T> T unwrap(Class<T> type) {
            return type.cast(target);
        }
    }

    /** Has the getter of Spring's wrappers. */
    public static final class WrappedDataSource extends PGSimpleDataSource {
        private static final long serialVersionUID = 1L;

        private final transient @Nullable DataSource target;

        WrappedDataSource(@Nullable DataSource target) {
            this.target = target;
        }

        public @Nullable DataSource getTargetDataSource() {
            return target;
        }
    }

    private static final class StartedMember implements Subscription {
        private final ConsumerSpec spec;
        private boolean running = true;

        StartedMember(ConsumerSpec spec) {
            this.spec = spec;
        }

        @Override
        public ConsumerSpec spec() {
            return spec;
        }

        @Override
        public boolean isRunning() {
            return running;
        }

        @Override
        public boolean close(Duration timeout) {
            running = false;
            return true;
        }

        @Override
        public void close() {
            running = false;
        }
    }
}
