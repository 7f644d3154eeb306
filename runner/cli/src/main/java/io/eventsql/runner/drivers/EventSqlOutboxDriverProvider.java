package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.Outbox;
import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;

/**
 * {@code eventsql-outbox}: EventSQL with publishing inside transactions, so that events and application rows are
 * committed together.
 */
public final class EventSqlOutboxDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "eventsql-outbox";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed with the application's rows, subject to the server's synchronous_commit and fsync",
                "per key, between transactions that exclude each other",
                "exactly once into the stream; at least once to a handler, exactly once to a transactional one");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return new OutboxDriver(settings);
    }

    /** Publishes through EventSQL's outbox, with one transaction per call. Thread-safe. */
    private static final class OutboxDriver extends EventSqlDriver {
        /** Below the pool size, because the library and waiting callers need connections as well. */
        private static final int ASYNC_TRANSACTIONS = 8;

        private static final long POLL_MS = 5;

        private final List<CallGroups> lanes = new CopyOnWriteArrayList<>();
        private final AtomicLong turn = new AtomicLong();

        OutboxDriver(DriverSettings settings) {
            super(settings);
        }

        @Override
        public PublishTarget publisher(String stream) {
            CallGroups calls = new CallGroups(
                    ASYNC_TRANSACTIONS, 1, events -> publishInTransaction(selectDatabase(events), stream, events));
            lanes.add(calls);
            return calls.target(false);
        }

        /** Selects the database by key, because order is kept within one outbox. */
        private DataSource selectDatabase(List<Event> events) {
            List<DataSource> databases = dataSources();
            String key = events.getFirst().key();
            long number = key == null ? turn.getAndIncrement() : events.size() == 1 ? key.hashCode() : 0;
            return databases.get(Math.floorMod(number, databases.size()));
        }

        private void publishInTransaction(DataSource database, String stream, List<Event> events) throws SQLException {
            Outbox outbox = eventSql().outbox();
            try (Connection connection = database.getConnection()) {
                connection.setAutoCommit(false);
                try {
                    outbox.publishAll(connection, stream, events);
                    connection.commit();
                } catch (SQLException | RuntimeException e) {
                    connection.rollback();
                    throw e;
                }
            }
            outbox.committed();
        }

        /** Clears the stream once the outboxes are empty, because pending events would arrive later. */
        @Override
        public void clear(String stream) throws InterruptedException {
            Outbox outbox = eventSql().outbox();
            while (outbox.backlogs().stream().anyMatch(backlog -> backlog.events() > 0)) {
                outbox.committed();
                TimeUnit.MILLISECONDS.sleep(POLL_MS);
            }
            super.clear(stream);
        }

        @Override
        public void close() {
            lanes.forEach(CallGroups::close);
            super.close();
        }
    }
}
