package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.Outbox;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;

/** A transaction of the application's that does nothing but publish. */
public final class OutboxTransaction {
    private OutboxTransaction() {}

    /**
     * Publishes events in a transaction of their own; returns when it is committed.
     *
     * @throws IllegalStateException if it was not
     */
    public static void publish(DataSource database, Outbox outbox, String stream, List<Event> events) {
        try (Connection connection = database.getConnection()) {
            connection.setAutoCommit(false);
            try {
                outbox.publishAll(connection, stream, events);
                connection.commit();
            } catch (SQLException | RuntimeException e) {
                connection.rollback();
                throw e;
            }
        } catch (SQLException e) {
            throw new IllegalStateException("The transaction failed: " + e.getMessage(), e);
        }
    }
}
