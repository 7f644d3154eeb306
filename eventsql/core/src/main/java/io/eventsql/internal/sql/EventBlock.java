package io.eventsql.internal.sql;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.SQLException;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The events in a row of a stream that stores blocks. The schema's file on blocks describes the format. Immutable: its
 * bytes are not changed.
 */
final class EventBlock {
    private static final int FIELDS = 3;
    private static final int FIRST_NUMBER = 1;
    private static final String DATA_CORRUPTED = "XX001";
    private static final char REPLACEMENT = '\uFFFD';

    private final ByteBuffer bytes;
    private final int events;
    /** Where the data begins. */
    private final int start;

    /**
     * Reads a block.
     *
     * @throws IllegalArgumentException if it is no block of that number of events
     */
    EventBlock(byte[] bytes, int events) {
        this.bytes = ByteBuffer.wrap(bytes);
        this.events = events;
        this.start = directoryBytes(events);
        requireOrder();
    }

    /**
     * Reads a block that is in the database.
     *
     * @throws SQLException if it is no block of that number of events
     */
    static EventBlock stored(byte[] bytes, int events) throws SQLException {
        try {
            return new EventBlock(bytes, events);
        } catch (IllegalArgumentException e) {
            throw new SQLException(e.getMessage(), DATA_CORRUPTED, e);
        }
    }

    /** Returns the column {@code distances}: an element for each event; none, unless events are missing. */
    static @Nullable Integer[] distances(@Nullable Array array) throws SQLException {
        return array == null ? new Integer[0] : (Integer[]) array.getArray();
    }

    /** Returns the column {@code erased_at}: an element for each event; none, unless one of them is erased. */
    static @Nullable Object[] times(@Nullable Array array) throws SQLException {
        return array == null ? new Object[0] : (Object[]) array.getArray();
    }

    /** Returns the size of what is in front of the data. */
    static int directoryBytes(int events) {
        return Integer.BYTES * (1 + FIELDS * events);
    }

    /**
     * Returns a block of events.
     *
     * @param fields the key, value and headers of the first event, then those of the second, and so on, texts in UTF-8
     * @param count the number of fields; what follows in the array is ignored
     * @param dataBytes the size of all fields
     */
    static byte[] pack(byte[] @Nullable [] fields, int count, int dataBytes) {
        ByteBuffer block = ByteBuffer.allocate(Integer.BYTES * (1 + count) + dataBytes);
        int position = FIRST_NUMBER;
        block.putInt(position);
        for (int i = 0; i < count; i++) {
            byte @Nullable [] field = fields[i];
            if (field == null) {
                block.putInt(-position);
            } else {
                position += field.length;
                block.putInt(position);
            }
        }
        for (int i = 0; i < count; i++) {
            byte @Nullable [] field = fields[i];
            if (field != null) {
                block.put(field);
            }
        }
        return block.array();
    }

    private void requireOrder() {
        int length = bytes.capacity();
        boolean isOrdered = events > 0 && start <= length && number(0) == FIRST_NUMBER;
        int last = FIRST_NUMBER;
        for (int i = 1; isOrdered && i <= FIELDS * events; i++) {
            int number = number(i);
            isOrdered = number < 0 ? -number == last : number >= last;
            last = Math.abs(number);
        }
        if (!isOrdered || last - FIRST_NUMBER != length - start) {
            throw new IllegalArgumentException("a row is no block of " + events + " events");
        }
    }

    private int number(int index) {
        return bytes.getInt(Integer.BYTES * index);
    }

    int size() {
        return events;
    }

    /** Returns the size of an event's fields. */
    int bytes(int event) {
        return at(FIELDS * (event + 1)) - at(FIELDS * event);
    }

    /** Returns the offset of an event, by its number from 0 and the offset of the row. */
    long offset(long last, @Nullable Integer[] distances, int event) {
        @Nullable Integer distance = distances.length == 0 ? null : distances[event];
        return last - (distance == null ? events - 1 - event : distance);
    }

    /** Returns whether an event has a key. */
    boolean hasKey(int event, String key) {
        try {
            return key.equals(key(event));
        } catch (CharacterCodingException e) {
            return false; // a key that is no text
        }
    }

    /** Returns a key, by the number of its event from 0. */
    @Nullable
    String key(int event) throws CharacterCodingException {
        return text(FIELDS * event + 1);
    }

    /** Returns a copy of a value; {@code null}: the event has none. */
    byte @Nullable [] value(int event) {
        int field = FIELDS * event + 2;
        int end = number(field);
        return end < 0 ? null : Arrays.copyOfRange(bytes.array(), at(field - 1), start + end - FIRST_NUMBER);
    }

    /** Returns headers as a JSON object; {@code null}: the event has none. */
    @Nullable
    String headers(int event) throws CharacterCodingException {
        return text(FIELDS * event + FIELDS);
    }

    private @Nullable String text(int field) throws CharacterCodingException {
        int end = number(field);
        if (end < 0) {
            return null;
        }
        int from = at(field - 1);
        int length = start + end - FIRST_NUMBER - from;
        String text = new String(bytes.array(), from, length, StandardCharsets.UTF_8);
        if (text.indexOf(REPLACEMENT) >= 0) { // it is part of the text, or takes the place of what is no UTF-8
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes.array(), from, length));
        }
        return text;
    }

    /** Returns where a field ends. */
    private int at(int field) {
        return start + Math.abs(number(field)) - FIRST_NUMBER;
    }
}
