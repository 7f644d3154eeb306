package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** {@code outbox_erasure}: the erasures of an outbox. Every change is one call of a function with the owner's rights. */
public final class OutboxErasureTable {
    // Index: the primary key.
    private static final String BEGIN = "SELECT eventsql.begin_outbox_erasure_v1(?, ?, ?)";

    // Reads the tables of the outbox. Locks the erasure's row and the rows that it erases.
    private static final String STEP =
            "SELECT phase, erased, is_waiting, reason FROM eventsql.erase_outbox_step_v1(?, ?)";

    // Index: the primary key. Takes no row lock.
    private static final String FIND = "SELECT phase, erased, tables FROM eventsql.outbox_erasure_v1(?)";

    private final SqlSchema schema;

    public OutboxErasureTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * The progress in one outbox.
     *
     * @param files how many tables may have values in their files; 0: not known yet
     * @param reason what the last step could not do; {@code null}: it was not prevented from anything
     */
    public record Progress(
            String phase,
            long erased,
            int files,
            boolean isWaiting,
            @Nullable String reason) {
        /** Returns whether no value of the key is left in the outbox or on its way. */
        public boolean isErased() {
            return phase.equals("files") || isDone();
        }

        public boolean isDone() {
            return phase.equals("done");
        }
    }

    /** Records an erasure, unless it is recorded. */
    public void begin(Connection connection, UUID id, String stream, String key) {
        Jooq.using(connection).fetch(schema.sql(BEGIN), id, stream, key);
    }

    /** Runs the next step, in the caller's transaction. */
    public Progress step(Connection connection, UUID id, int maxRows) {
        var r = Jooq.using(connection).fetchSingle(schema.sql(STEP), id, maxRows);
        return new Progress(
                r.get(0, String.class), r.get(1, Long.class), 0, r.get(2, Boolean.class), r.get(3, String.class));
    }

    /** Returns the progress of an erasure. */
    public Optional<Progress> find(Connection connection, UUID id) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(FIND), id)
                .map(r -> new Progress(
                        r.get(0, String.class), r.get(1, Long.class), r.get(2, Integer.class), false, null));
    }
}
