package io.eventsql.internal.erase;

import io.eventsql.Erasure;
import io.eventsql.Erasure.Part;
import io.eventsql.Erasure.State;
import io.eventsql.ErasureSpec;
import io.eventsql.EventSqlException;
import io.eventsql.internal.relay.Relays;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ErasureTable;
import io.eventsql.internal.sql.OutboxErasureTable;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Records erasures on all databases and runs their steps: the outboxes first, then the shards, whose heads are read only
 * when no value of the key is on its way. Thread-safe.
 */
public final class Eraser {
    private static final Logger LOG = LoggerFactory.getLogger(Eraser.class);
    /** How long a step may take that reads whole tables, or writes the file of one anew. */
    private static final Duration STEP_TIME_MAX = Duration.ofHours(1);

    private final Shards shards;
    private final StreamRegistry streams;
    private final Relays relays;
    private final ErasureTable erasures;
    private final OutboxErasureTable inOutbox;

    public Eraser(Shards shards, StreamRegistry streams, Relays relays) {
        this.shards = shards;
        this.streams = streams;
        this.relays = relays;
        this.erasures = shards.tables().erasures();
        this.inOutbox = shards.tables().outbox().erasures();
    }

    /** See {@link io.eventsql.EventSql#erase(ErasureSpec)}. */
    public Erasure erase(ErasureSpec spec) {
        streams.require(spec.stream());
        return run(UUID.randomUUID(), spec); // replaces an earlier one that has not ended
    }

    /** See {@link io.eventsql.EventSql#resumeErasure}. */
    public Erasure resume(UUID id) {
        ErasureTable.Row row = call("Resuming the erasure " + id, () -> find(id))
                .orElseThrow(() -> new EventSqlException("There is no erasure " + id));
        return run(
                id,
                ErasureSpec.of(row.stream(), row.key())
                        .withHeaders(row.headers().toArray(String[]::new))
                        .withDeadLetterStreams(row.deadLetterStreams().toArray(String[]::new)));
    }

    /** See {@link io.eventsql.EventSql#erasures}. */
    public List<Erasure> list() {
        shards.requireAllGiven("Listing the erasures failed");
        return call("Listing the erasures", () -> {
            Map<UUID, Instant> ids = new LinkedHashMap<>();
            for (Shard shard : shards.all()) {
                for (ErasureTable.Row row : shard.require().read(erasures::list)) {
                    ids.putIfAbsent(row.id(), row.startedAt());
                }
            }
            List<Erasure> described = new ArrayList<>();
            for (UUID id : ids.keySet()) {
                described.add(describe(id, new LinkedHashMap<>()));
            }
            described.sort(Comparator.comparing(Erasure::startedAt).reversed());
            return described;
        });
    }

    private Erasure run(UUID id, ErasureSpec spec) {
        String failure = "Erasing a key of stream " + spec.stream() + " (erasure " + id + ")";
        shards.requireAllGiven(failure + " failed");
        ErasureSteps steps = new ErasureSteps(spec, failure);
        Set<Integer> recorded = begin(id, spec, failure, steps);
        do {
            boolean outboxesErased = true;
            for (Map.Entry<String, Database> outbox : outboxes(failure).entrySet()) {
                outboxesErased &= runOutbox(id, outbox.getKey(), outbox.getValue(), steps);
            }
            if (outboxesErased) {
                for (Shard shard : shards.all()) {
                    runShard(id, shard, recorded.contains(shard.number()), steps);
                }
            }
        } while (steps.isWaiting() && steps.mayWaitOn());
        Erasure erasure = call(failure, () -> describe(id, steps.reasons()));
        LOG.info(
                "Erasure {} of a key of stream {}: {} events erased; {}",
                id,
                spec.stream(),
                erasure.erasedEvents(),
                erasure.isDone()
                        ? "done"
                        : "not done, because of " + steps.reasons() + "; repeat the call to continue");
        return erasure;
    }

    /** Records the erasure everywhere before anything is erased; returns the numbers of the shards that have the stream. */
    private Set<Integer> begin(UUID id, ErasureSpec spec, String failure, ErasureSteps steps) {
        Set<String> headers = spec.headers();
        Set<Integer> recorded = new HashSet<>();
        for (Shard shard : shards.all()) {
            boolean hasStream = call(
                    failure + " on " + shard,
                    () -> steps.retried(() -> shard.require()
                            .transaction(c -> erasures.begin(
                                    c, id, spec.stream(), spec.key(), headers, spec.deadLetterStreams()))));
            if (hasStream) {
                recorded.add(shard.number());
            }
        }
        for (Map.Entry<String, Database> outbox : outboxes(failure).entrySet()) {
            call(
                    failure + " in outbox " + outbox.getKey(),
                    () -> steps.retried(() -> outbox.getValue().transaction(c -> {
                        inOutbox.begin(c, id, spec.stream(), spec.key());
                        return true;
                    })));
        }
        return recorded;
    }

    private Map<String, Database> outboxes(String failure) {
        return call(failure, relays::databases);
    }

    /** Runs steps until the outbox is done or something is in the way; returns whether it has no value of the key left. */
    private boolean runOutbox(UUID id, String name, Database database, ErasureSteps steps) {
        boolean[] isErased = {
            call("Reading the erasure " + id, () -> database.read(c -> inOutbox.find(c, id)))
                    .map(OutboxErasureTable.Progress::isErased)
                    .orElse(false)
        };
        steps.repeat("outbox " + name, () -> {
            OutboxErasureTable.Progress progress = database.transaction(c -> {
                database.allowLongStatements(c, STEP_TIME_MAX); // the tables have no index of keys
                return inOutbox.step(c, id, steps.size());
            });
            isErased[0] = progress.isErased();
            return new ErasureSteps.Step(progress.isDone(), progress.isWaiting(), progress.reason());
        });
        return isErased[0];
    }

    private void runShard(UUID id, Shard shard, boolean isRecorded, ErasureSteps steps) {
        Optional<ErasureTable.Row> row =
                call("Reading the erasure " + id, () -> shard.require().read(c -> erasures.find(c, id)));
        if (row.isEmpty()) {
            if (isRecorded) {
                throw steps.replaced(null);
            }
            return; // the shard has had no such stream
        }
        boolean[] isErased = {row.get().progress().isErased()};
        steps.repeat("shard " + shard.name(), () -> {
            Database database = shard.require();
            ErasureTable.Progress progress = database.transaction(c -> {
                if (isErased[0]) { // what remains is to write files anew
                    database.allowLongStatements(c, STEP_TIME_MAX);
                }
                return erasures.step(c, id, steps.size());
            });
            isErased[0] = progress.isErased();
            return new ErasureSteps.Step(progress.isDone(), progress.isWaiting(), progress.reason());
        });
    }

    private Optional<ErasureTable.Row> find(UUID id) throws SQLException {
        for (Shard shard : shards.all()) {
            Optional<ErasureTable.Row> row = shard.require().read(c -> erasures.find(c, id));
            if (row.isPresent()) {
                return row;
            }
        }
        return Optional.empty();
    }

    private Erasure describe(UUID id, Map<String, String> reasons) throws SQLException {
        List<Part> parts = new ArrayList<>();
        ErasureTable.Row first = null;
        for (Shard shard : shards.all()) {
            Optional<ErasureTable.Row> row = shard.require().read(c -> erasures.find(c, id));
            if (row.isPresent()) {
                first = first == null ? row.get() : first;
                ErasureTable.Progress progress = row.get().progress();
                parts.add(new Part(
                        shard.name(),
                        false,
                        state(progress.isErased(), progress.isDone()),
                        progress.scanned(),
                        progress.erased(),
                        progress.files(),
                        reasons.get("shard " + shard.name())));
            }
        }
        for (Map.Entry<String, Database> outbox : relays.databases().entrySet()) {
            Optional<OutboxErasureTable.Progress> progress = outbox.getValue().read(c -> inOutbox.find(c, id));
            parts.add(new Part(
                    outbox.getKey(),
                    true,
                    state(
                            progress.map(OutboxErasureTable.Progress::isErased).orElse(false),
                            progress.map(OutboxErasureTable.Progress::isDone).orElse(false)),
                    0,
                    progress.map(OutboxErasureTable.Progress::erased).orElse(0L),
                    progress.map(OutboxErasureTable.Progress::files).orElse(0),
                    reasons.get("outbox " + outbox.getKey())));
        }
        if (first == null) {
            throw new EventSqlException("There is no erasure " + id);
        }
        return new Erasure(id, first.stream(), first.key(), first.startedAt(), parts);
    }

    private static State state(boolean isErased, boolean isDone) {
        return isDone ? State.DONE : isErased ? State.ERASED : State.ERASING;
    }

    @FunctionalInterface
    interface Work<T> {
        T run() throws SQLException;
    }

    private static <T> T call(String failure, Work<T> work) {
        try {
            return work.run();
        } catch (SQLException e) {
            throw new EventSqlException(
                    failure + " failed; what is erased stays erased, repeat the call: " + SqlErrors.message(e), e);
        }
    }
}
