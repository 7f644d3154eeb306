package io.eventsql.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.Subscription;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
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
        List<ShardInfo> infos = new ArrayList<>();
        for (DataSource shard : shards) {
            infos.add(new ShardInfo(infos.size(), "db" + infos.size(), shard));
        }
        return new PoolCheck(Settings.defaults(), shards.length, () -> infos, outboxes, stream -> PARTITIONS);
    }

    @Test
    void check_oneShard_needsSixConnections() {
        check(Map.of(), pool(6)).check();
        assertThat(warnings()).isEmpty();
        check(Map.of(), pool(5)).check();
        assertThat(warnings())
                .singleElement()
                .asString()
                .startsWith("The pool of shard db0 has 5 connections, but up to 6 are needed,")
                .contains("2 to append, 1 to send signals, 1 for background work, 2 to relay the outbox.")
                .contains("Increase its maximum size");
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
                                .startsWith("The pool of shard db0 has 10 connections, but up to 11 are needed,")
                                .contains("5 to transfer events of outboxes"),
                        outbox -> assertThat(outbox)
                                .startsWith("The pool of outbox outbox0 has 4 connections, but up to 5 are needed,")
                                .contains("2 to relay the outbox, 3 to transfer events of outboxes."));
    }

    @Test
    void checkStarted_consumer_needsFourMore() {
        PoolCheck check = check(Map.of(), pool(9));
        check.check();
        assertThat(warnings()).isEmpty();
        check.checkStarted(new StartedMember(SPEC), false);
        assertThat(warnings()).singleElement().asString().contains("up to 10 are needed", "4 to consume");
        check.checkStarted(new StartedMember(SPEC), false);
        assertThat(warnings()).as("members share these connections").isEmpty();
    }

    @Test
    void checkStarted_transactional_needsItsConcurrencyAtMostItsPartitions() {
        PoolCheck check = check(Map.of(), pool(10));
        check.checkStarted(new StartedMember(SPEC), true);
        assertThat(warnings()).singleElement().asString().contains("up to 20 are needed", "10 for transactional");
        check.checkStarted(new StartedMember(SPEC.withConcurrency(3)), true);
        assertThat(warnings()).singleElement().asString().contains("up to 23 are needed", "13 for transactional");
        check.checkStarted(new StartedMember(SPEC.withMaxPartitions(1)), true);
        assertThat(warnings()).singleElement().asString().contains("up to 24 are needed");
    }

    @Test
    void checkStarted_afterOthersWereClosed_doesNotCountThem() {
        PoolCheck check = check(Map.of(), pool(20));
        for (int i = 0; i < 5; i++) {
            StartedMember member = new StartedMember(SPEC);
            check.checkStarted(member, true);
            member.close();
        }
        assertThat(warnings()).isEmpty();
    }

    @Test
    void check_unknownDataSource_isNotChecked() {
        check(Map.of(), new PGSimpleDataSource()).check();
        assertThat(warnings()).isEmpty();
    }

    @Test
    void check_wrappedPool_isUnwrapped() {
        check(Map.of(), new WrappedDataSource(pool(5))).check();
        assertThat(warnings()).hasSize(1);
    }

    /** Has the getter of Spring's wrappers. */
    public static final class WrappedDataSource extends PGSimpleDataSource {
        private static final long serialVersionUID = 1L;

        private final transient DataSource target;

        WrappedDataSource(DataSource target) {
            this.target = target;
        }

        public DataSource getTargetDataSource() {
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
