package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.Outbox;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;

/** An application transaction that only publishes. */
public final class OutboxTransaction {
    private OutboxTransaction() {}

    /**
     * Publishes events in a new transaction. Returns after the commit.
     *
     * @throws IllegalStateException if the transaction failed
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
