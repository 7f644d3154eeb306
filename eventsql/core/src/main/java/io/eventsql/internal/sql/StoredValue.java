package io.eventsql.internal.sql;

import io.eventsql.StoredEvent;
import io.eventsql.ValueState;
import org.jspecify.annotations.Nullable;

/** The column {@code value} of the tables that carry events: {@code NULL} without a value, so also for a tombstone. */
public final class StoredValue {
    private static final byte[] NO_VALUE = {};

    private StoredValue() {}

    /** Returns the value to store in a copy of an event that is not erased. */
    public static byte @Nullable [] of(StoredEvent event) {
        return event.isTombstone() ? null : event.value();
    }

    /** Returns what a stored value says of its event. */
    static ValueState state(byte @Nullable [] stored, boolean isErased) {
        if (isErased) {
            return ValueState.ERASED;
        }
        return stored == null ? ValueState.TOMBSTONE : ValueState.PRESENT;
    }

    /** Returns the value as an event has it. */
    static byte[] orEmpty(byte @Nullable [] stored) {
        return stored == null ? NO_VALUE : stored;
    }
}
