package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The append functions of streams, {@code append_v2_<stream id>} or {@code append_blocks_<stream id>}, and which of them this
 * process calls. Thread-safe.
 *
 * <p>Every backend keeps the plans of the functions it has executed, about 140 kB for each stream, for as long as it lives. So
 * a process calls those of a bounded number of streams; a stream that was not appended to for a while makes room for another.
 */
final class AppendFunctions {
    static final int STREAMS_MAX = 100;
    static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(10);
    /** A function that could not be called is looked for again, because the privilege may be granted later. */
    static final long RETRY_NANOS = TimeUnit.MINUTES.toNanos(1);

    // to_regproc returns NULL for what does not exist, and an error only without the right to use the schema.
    private static final String FIND = "SELECT coalesce(has_function_privilege(to_regproc(?), 'EXECUTE'), false)";

    static final String OF_ROWS = "eventsql.append_v2_";
    static final String OF_BLOCKS = "eventsql.append_blocks_";

    private final String prefix;
    private final int streamsMax;
    private final LongSupplier nanoClock;
    private final Map<Key, Function> functions = new ConcurrentHashMap<>();

    /** A stream of a database; its id is valid for one incarnation. */
    private record Key(@Nullable String incarnation, int streamId) {}

    /** What is known of a function. */
    private static final class Function {
        private volatile boolean usable;
        private volatile long usedNanos;

        Function(boolean usable, long nowNanos) {
            this.usable = usable;
            this.usedNanos = nowNanos;
        }
    }

    /** @param streamsMax the number of streams whose functions are called; 0: none */
    AppendFunctions(SqlSchema schema, int streamsMax, LongSupplier nanoClock) {
        this(schema, OF_ROWS, streamsMax, nanoClock);
    }

    /** @param name {@link #OF_ROWS} or {@link #OF_BLOCKS} */
    AppendFunctions(SqlSchema schema, String name, int streamsMax, LongSupplier nanoClock) {
        this.streamsMax = streamsMax;
        this.prefix = schema.sql(name);
        this.nanoClock = nanoClock;
    }

    /** Returns the name of a stream's function as SQL. */
    String name(int streamId) {
        return prefix + streamId;
    }

    /** Returns whether to call the function of a stream. Asks the database at the first call for it, in any transaction. */
    boolean isUsable(Connection connection, @Nullable String incarnation, int streamId) throws SQLException {
        Key key = new Key(incarnation, streamId);
        long now = nanoClock.getAsLong();
        Function known = functions.get(key);
        if (known == null && functions.size() >= streamsMax) {
            functions.values().removeIf(function -> now - function.usedNanos > IDLE_NANOS);
            if (functions.size() >= streamsMax) {
                return false;
            }
        }
        if (known == null || (!known.usable && now - known.usedNanos > RETRY_NANOS)) {
            known = new Function(find(connection, streamId), now);
            functions.put(key, known);
        } else if (known.usable) {
            known.usedNanos = now;
        }
        return known.usable;
    }

    private boolean find(Connection connection, int streamId) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(FIND)) {
            statement.setString(1, name(streamId));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /** Records that the function of a stream does not exist any more, or may not be executed. */
    void reject(@Nullable String incarnation, int streamId) {
        functions.put(new Key(incarnation, streamId), new Function(false, nanoClock.getAsLong()));
    }
}
