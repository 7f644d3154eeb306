package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSqlException;
import io.eventsql.Outbox;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/**
 * Writers that publish inside transactions: each transaction writes rows to the table {@code bill} and publishes an event
 * of the same name for each; a part is rolled back, whole or to a savepoint. So whatever becomes of a transaction, the
 * stream must have exactly the events whose rows are in the table: that is all {@link #verify} asks, and needs no
 * writer's memory.
 *
 * <p>A name is {@code <key>/<number>} ({@code -<writer>} without a key); numbers rise, and the transactions of a key
 * follow each other.
 */
final class OutboxLoad {
    /** The application's table. */
    static final String TABLE = "CREATE TABLE bill (name text PRIMARY KEY)";

    private static final int KEYS_OF_A_WRITER = 3;
    private static final int EVENTS_MAX = 6;

    private final DataSource database;
    private final Outbox outbox;
    private final String stream;
    private final List<Thread> writers = new ArrayList<>();
    private volatile boolean stopped;

    OutboxLoad(DataSource database, Outbox outbox, String stream) {
        this.database = database;
        this.outbox = outbox;
        this.stream = stream;
    }

    /** Starts a writer; the name is its own in all processes. */
    void start(String name, Random random, int pauseMaxMs) {
        Random own = new Random(random.nextLong());
        Thread writer = new Thread(() -> write(name, own, pauseMaxMs), "writer-" + name);
        writer.setDaemon(true);
        writers.add(writer);
        writer.start();
    }

    /** Ends all writers. */
    void stop() throws InterruptedException {
        stopped = true;
        for (Thread writer : writers) {
            writer.join(TimeUnit.MINUTES.toMillis(1));
            assertThat(writer.isAlive()).as("%s has ended", writer.getName()).isFalse();
        }
    }

    private void write(String name, Random random, int pauseMaxMs) {
        int number = 0;
        while (!stopped) {
            try (Connection transaction = database.getConnection()) {
                transaction.setAutoCommit(false);
                while (!stopped) {
                    number = write(transaction, name, number, random);
                    pause(random, pauseMaxMs);
                }
            } catch (SQLException | EventSqlException e) {
                number += EVENTS_MAX * 2; // committed or not: the table knows
                pause(random, 50);
            }
        }
    }

    private int write(Connection transaction, String name, int first, Random random) throws SQLException {
        int number = writeSome(transaction, name, first, random);
        if (random.nextInt(4) == 0) {
            Savepoint savepoint = transaction.setSavepoint();
            number = writeSome(transaction, name, number, random);
            if (random.nextBoolean()) {
                transaction.rollback(savepoint);
            }
        }
        if (random.nextInt(5) == 0) {
            transaction.rollback();
        } else {
            transaction.commit();
            if (random.nextBoolean()) {
                outbox.committed();
            }
        }
        return number;
    }

    private int writeSome(Connection transaction, String name, int first, Random random) throws SQLException {
        int number = first;
        List<Event> events = new ArrayList<>();
        try (PreparedStatement insert = transaction.prepareStatement("INSERT INTO bill VALUES (?)")) {
            for (int i = random.nextInt(EVENTS_MAX); i >= 0; i--) {
                int key = random.nextInt(KEYS_OF_A_WRITER + 1);
                String bill = (key == KEYS_OF_A_WRITER ? "-" + name : name + key) + "/" + number++;
                insert.setString(1, bill);
                insert.addBatch();
                events.add(
                        key == KEYS_OF_A_WRITER
                                ? Event.ofText(bill)
                                : Event.ofText(name + key, bill).withHeader("a", "b"));
            }
            insert.executeBatch();
        }
        if (random.nextBoolean()) {
            outbox.publishAll(transaction, stream, events);
        } else {
            for (Event event : events) {
                outbox.publish(transaction, stream, event);
            }
        }
        return number;
    }

    private static void pause(Random random, int pauseMaxMs) {
        try {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(pauseMaxMs + 1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Waits until nothing waits in any outbox, with a wide deadline, so that only a hang fails it. */
    static void awaitRelayed(Outbox outbox) {
        await().atMost(Duration.ofSeconds(90))
                .pollInterval(Duration.ofMillis(50))
                .ignoreExceptions()
                .untilAsserted(() -> assertThat(outbox.backlogs()).allMatch(backlog -> backlog.events() == 0));
    }

    /**
     * What must hold whatever happened: the stream has the events of exactly the rows that were committed, each once, those
     * of a key in their order; offsets are gapless; nothing was refused.
     *
     * @return how many events there are
     */
    static int verify(String stream, List<DataSource> shards, List<DataSource> databases) throws SQLException {
        List<Ledger.Stored> stored = Ledger.read(stream, shards);
        Ledger.assertGapless(stored);
        Set<String> names = new HashSet<>();
        Map<String, Integer> lastNumbers = new HashMap<>();
        for (Ledger.Stored event : stored) {
            assertThat(names.add(event.value())).as("stored once: %s", event).isTrue();
            if (event.key() != null) {
                int number =
                        Integer.parseInt(event.value().substring(event.key().length() + 1));
                Integer last = lastNumbers.put(event.key(), number);
                assertThat(last == null ? -1 : last).as("before %s", event).isLessThan(number);
            }
        }
        Set<String> bills = new HashSet<>();
        for (DataSource database : databases) {
            bills.addAll(Sql.query(database, "SELECT name FROM bill"));
            assertThat(Sql.query(database, "SELECT error FROM eventsql.outbox_refused"))
                    .isEmpty();
        }
        Set<String> lost = new HashSet<>(bills);
        lost.removeAll(names);
        assertThat(lost).as("committed, and not in the stream").isEmpty();
        names.removeAll(bills);
        assertThat(names).as("in the stream, and not committed").isEmpty();
        return stored.size();
    }
}
