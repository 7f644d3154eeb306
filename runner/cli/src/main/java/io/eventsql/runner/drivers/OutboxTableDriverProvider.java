package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.driver.CallGroups;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.driver.PublishTarget;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;

/**
 * {@code outbox-table}: a hand-written outbox in one database. Callers insert into a plain table and a consumer deletes
 * from it. Options: {@code pollers} (4), the connections that poll; {@code page_events} (100), the maximum events per
 * poll; {@code poll_ms} (10), the pause after a poll without events.
 */
public final class OutboxTableDriverProvider implements DriverProvider {
    private static final int DEFAULT_LANES = 8;
    private static final int LANES_MAX = 16;
    private static final int GROUP_EVENTS_MAX = 100_000;
    private static final int POLLERS_MAX = 8;
    private static final int PAGE_EVENTS_MAX = 100_000;
    private static final int POLL_MAX_MS = 60_000;

    @Override
    public String name() {
        return "outbox-table";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                "committed, subject to the server's synchronous_commit and fsync",
                "none",
                "at least once, to one consumer; handled events are deleted");
    }

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    @Override
    public Driver open(DriverSettings settings) {
        DatabaseAddress address = DatabaseVariables.readOne(new Variables(settings.environment()::get));
        Variables options = new Variables(settings.options()::get);
        OutboxPoller.Settings polling = new OutboxPoller.Settings(
                options.number("pollers", 4, 1, POLLERS_MAX),
                options.number("page_events", 100, 1, PAGE_EVENTS_MAX),
                options.number("poll_ms", 10, 0, POLL_MAX_MS));
        int lanes = options.number("lanes", DEFAULT_LANES, 1, LANES_MAX);
        int groupEvents = options.number("group_events", 1, 1, GROUP_EVENTS_MAX);
        return new OutboxTableDriver(Databases.open(List.of(address)), polling, lanes, groupEvents);
    }

    /** Streams as plain tables of one database. Stores keys and values, but not headers. Thread-safe. */
    private static final class OutboxTableDriver implements Driver {
        private final Databases databases;
        private final DataSource database;
        private final OutboxPoller.Settings polling;
        private final int lanes;
        private final int groupEvents;
        private final List<CallGroups> groups = new CopyOnWriteArrayList<>();
        private final Map<String, String> consumers = new ConcurrentHashMap<>();

        /**
         * @param lanes the connections of asynchronous calls and, if calls are grouped, of all
         * @param groupEvents the events from which a group of calls, one commit, takes no further one; 1: no groups
         */
        OutboxTableDriver(Databases databases, OutboxPoller.Settings polling, int lanes, int groupEvents) {
            this.databases = databases;
            this.database = databases.dataSources().getFirst();
            this.polling = polling;
            this.lanes = lanes;
            this.groupEvents = groupEvents;
        }

        @Override
        public String version() throws SQLException {
            try (Connection connection = database.getConnection()) {
                return "PostgreSQL " + connection.getMetaData().getDatabaseProductVersion();
            }
        }

        @Override
        public void createStream(String name, int partitions) throws SQLException {
            Jdbc.execute(
                    database,
                    "CREATE TABLE " + table(name)
                            + " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text, value bytea NOT NULL,"
                            + " created_at timestamptz NOT NULL DEFAULT clock_timestamp())");
        }

        /**
         * Returns the table of a stream. Stream names consist of letters, digits and underscores, so they are safe in
         * SQL.
         */
        static String table(String stream) {
            return "outbox_of_" + stream;
        }

        @Override
        public PublishTarget publisher(String stream) {
            String insert = "INSERT INTO " + table(stream) + " (key, value) ";
            CallGroups grouped = new CallGroups(lanes, groupEvents, events -> insert(insert, events));
            groups.add(grouped);
            return grouped.target(groupEvents > 1);
        }

        /** Inserts the events of a call with one statement in auto-commit mode. */
        private void insert(String insert, List<Event> events) throws SQLException {
            if (events.size() == 1) {
                Event event = events.getFirst();
                Jdbc.execute(database, insert + "VALUES (?, ?)", event.key(), event.value());
            } else {
                String rows = "SELECT e.key, e.value FROM unnest(?::text[], ?::bytea[])"
                        + " WITH ORDINALITY AS e (key, value, number) ORDER BY e.number";
                Jdbc.execute(database, insert + rows, Jdbc.keys(events), Jdbc.values(events));
            }
        }

        /**
         * Starts the stream's only consumer.
         *
         * @throws UnsupportedOperationException for a second consumer, because the first one deletes the events
         */
        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            String first = consumers.putIfAbsent(stream, consumer);
            if (first != null) {
                throw new UnsupportedOperationException(
                        "an outbox table supports only one consumer, which is " + first);
            }
            OutboxPoller poller = new OutboxPoller(database, table(stream), polling, listener);
            return () -> {
                poller.close();
                consumers.remove(stream);
            };
        }

        @Override
        public void clear(String stream) throws SQLException {
            Jdbc.execute(database, "TRUNCATE " + table(stream));
        }

        @Override
        public void close() {
            groups.forEach(CallGroups::close);
            databases.close();
        }
    }
}
