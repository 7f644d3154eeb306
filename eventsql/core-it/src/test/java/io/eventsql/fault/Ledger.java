package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.PartialPublishException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * What was published and what the publisher was told of it, to be compared with what is stored. The events of one key
 * must be published by one thread. Thread-safe.
 *
 * <p>An event's value is {@code <key>/<number>} ({@code -} without a key), with numbers that rise with each call of that key.
 */
class Ledger {
    private enum Told {
        NOTHING,
        NOT_STORED,
        UNKNOWN
    }

    private final Map<String, Object> told = new ConcurrentHashMap<>();
    private final Map<String, Integer> numbers = new ConcurrentHashMap<>();
    private final String withoutKey;

    /** The ledger of a test with one publisher. */
    Ledger() {
        this("-");
    }

    /** @param withoutKey the name of the events without a key, different for each publisher */
    Ledger(String withoutKey) {
        this.withoutKey = withoutKey;
    }

    /** One event as it is stored. */
    record Stored(
            int shard, int partition, long offset, @Nullable String key, String value) {}

    /** The next event of a key ({@code null}: of none), to be published now. */
    Event next(@Nullable String key) {
        String name = key == null ? withoutKey : key;
        int number = numbers.merge(name, 1, Integer::sum);
        String value = name + "/" + number;
        told.put(value, Told.NOTHING);
        return key == null ? Event.ofText(value) : Event.ofText(key, value);
    }

    /** The publisher said where the event is. */
    void stored(Event event, EventPosition position) {
        told.put(event.text(), position);
    }

    /** The publisher threw this at the call with these events. */
    void failed(List<Event> events, Throwable failure) {
        if (failure instanceof PartialPublishException partial) {
            for (int i = 0; i < events.size(); i++) {
                PartialPublishException.Outcome outcome = partial.outcomes().get(i);
                EventPosition position = outcome.position();
                if (position != null) {
                    stored(events.get(i), position);
                } else {
                    failed(List.of(events.get(i)), outcome.failure());
                }
            }
            return;
        }
        Told what = switch (failure) {
            case EventNotStoredException notStored -> Told.NOT_STORED;
            case EventOutcomeUnknownException unknown -> Told.UNKNOWN;
            default -> throw new AssertionError("a publisher must not throw this", failure);
        };
        events.forEach(event -> told.put(event.text(), what));
    }

    long storedCount() {
        return told.values().stream().filter(EventPosition.class::isInstance).count();
    }

    long notStoredCount() {
        return told.values().stream().filter(Told.NOT_STORED::equals).count();
    }

    long unknownCount() {
        return told.values().stream().filter(Told.UNKNOWN::equals).count();
    }

    @Override
    public String toString() {
        return told.size() + " events: " + storedCount() + " stored, " + notStoredCount() + " not stored, "
                + unknownCount() + " unknown";
    }

    /** All events of a stream on the given shards, by shard, partition and offset. */
    static List<Stored> read(String stream, List<DataSource> shards) throws SQLException {
        List<Stored> events = new ArrayList<>();
        for (int shard = 0; shard < shards.size(); shard++) {
            try (Connection connection = shards.get(shard).getConnection();
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT partition, event_offset, key,"
                            + " convert_from(value, 'UTF8') FROM eventsql.events_" + stream + " ORDER BY 1, 2")) {
                while (rows.next()) {
                    events.add(
                            new Stored(shard, rows.getInt(1), rows.getLong(2), rows.getString(3), rows.getString(4)));
                }
            }
        }
        return events;
    }

    /**
     * What must hold whatever happened: offsets are gapless; every acknowledged event is where it was said to be; no
     * event is there twice; one that was said not to be stored is not; the events of a key are in call order.
     */
    void verify(List<Stored> stored) {
        assertGapless(stored);
        Map<String, Stored> byValue = new HashMap<>();
        Map<String, Integer> lastNumbers = new HashMap<>();
        for (Stored event : stored) {
            Stored other = byValue.put(event.value(), event);
            if (other != null) {
                fail("stored twice: %s and %s", other, event);
            }
            assertThat(told).as("an event nobody published: %s", event).containsKey(event.value());
            int slash = event.value().lastIndexOf('/');
            String name = event.value().substring(0, slash);
            int number = Integer.parseInt(event.value().substring(slash + 1));
            if (event.key() != null) {
                assertThat(name).isEqualTo(event.key());
                Integer last = lastNumbers.put(name, number);
                assertThat(last == null ? 0 : last)
                        .as("the event of key %s before %s", name, event)
                        .isLessThan(number);
            }
        }
        told.forEach((value, what) -> {
            Stored event = byValue.get(value);
            if (what instanceof EventPosition position) {
                assertThat(event).as("acknowledged %s at %s", value, position).isNotNull();
                assertThat(new EventPosition(position.stream(), event.shard(), event.partition(), event.offset()))
                        .isEqualTo(position);
            } else if (what == Told.NOT_STORED) {
                assertThat(event).as("said not to be stored").isNull();
            } else if (what == Told.NOTHING) {
                fail("nobody was told what became of %s", value);
            }
        });
    }

    /** Offsets of each partition start at 0 and have no gap. */
    static void assertGapless(List<Stored> stored) {
        Map<List<Integer>, List<Long>> offsets = stored.stream()
                .collect(Collectors.groupingBy(
                        e -> List.of(e.shard(), e.partition()),
                        Collectors.mapping(Stored::offset, Collectors.toList())));
        offsets.forEach((partition, ofPartition) -> {
            for (int i = 0; i < ofPartition.size(); i++) {
                assertThat(ofPartition.get(i))
                        .as("offset %s of shard and partition %s", i, partition)
                        .isEqualTo(i);
            }
        });
    }

    /** The values that are stored. */
    static Set<String> values(List<Stored> stored) {
        return stored.stream().map(Stored::value).collect(Collectors.toSet());
    }
}
