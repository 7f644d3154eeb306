package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.Outbox;
import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;

/** Publishes through EventSQL's outbox, with one transaction per call. Thread-safe. */
final class EventSqlOutboxDriver extends EventSqlDriver {
    /** Below the pool size, because the library and waiting callers need connections as well. */
    private static final int ASYNC_TRANSACTIONS = 8;

    private static final long POLL_MS = 5;

    private final List<CallGroups> lanes = new CopyOnWriteArrayList<>();
    private final AtomicLong turn = new AtomicLong();

    EventSqlOutboxDriver(EventSqlStreams streams) {
        super(streams);
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
        List<DataSource> databases = streams.dataSources();
        String key = events.getFirst().key();
        long number = key == null ? turn.getAndIncrement() : events.size() == 1 ? key.hashCode() : 0;
        return databases.get(Math.floorMod(number, databases.size()));
    }

    private void publishInTransaction(DataSource database, String stream, List<Event> events) throws SQLException {
        Outbox outbox = streams.eventSql().outbox();
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
        Outbox outbox = streams.eventSql().outbox();
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
