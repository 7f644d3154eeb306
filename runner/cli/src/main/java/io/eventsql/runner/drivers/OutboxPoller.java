package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.driver.PollingConsumer;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/**
 * Consumes an outbox table on several connections. Each connection deletes the oldest rows that are not locked,
 * delivers their events and commits. A failure rolls back the deletion.
 */
final class OutboxPoller implements AutoCloseable {

    /**
     * The poll settings.
     *
     * @param pollers the number of connections that poll concurrently
     * @param pageEvents the maximum number of events per poll
     * @param pollMs the pause after a poll without events
     */
    record Settings(int pollers, int pageEvents, int pollMs) {}

    private static final long PAUSE_AFTER_FAILURE_MS = 1_000;

    private final DataSource database;
    private final String take;
    private final Settings settings;
    private final DeliveryListener listener;
    private final List<PollingConsumer> consumers = new ArrayList<>();

    /** Starts polling. */
    OutboxPoller(DataSource database, String table, Settings settings, DeliveryListener listener) {
        this.database = database;
        this.settings = settings;
        this.listener = listener;
        // Oldest first by the primary key. Rows locked by other pollers are skipped.
        this.take = "DELETE FROM " + table + " WHERE id = ANY (ARRAY(SELECT id FROM " + table
                + " ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING key, value";
        for (int i = 0; i < settings.pollers; i++) {
            consumers.add(PollingConsumer.start(table + "-" + i, this::poll, listener::failed));
        }
    }

    /** Returns the pause in milliseconds. */
    private long poll() {
        try {
            return deliverNextPage() == 0 ? settings.pollMs : 0;
        } catch (SQLException | RuntimeException e) {
            listener.failed(e);
            return PAUSE_AFTER_FAILURE_MS;
        }
    }

    private int deliverNextPage() throws SQLException {
        try (Connection connection = database.getConnection()) {
            connection.setAutoCommit(false);
            try {
                List<Event> events = Jdbc.rows(
                        connection,
                        take,
                        row -> new Event(row.getString(1), row.getBytes(2), Map.of()),
                        settings.pageEvents);
                if (!events.isEmpty()) {
                    listener.delivered(events);
                }
                connection.commit();
                return events.size();
            } catch (SQLException | RuntimeException e) {
                connection.rollback();
                throw e;
            }
        }
    }

    @Override
    public void close() {
        consumers.forEach(PollingConsumer::close);
    }
}
