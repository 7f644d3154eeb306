package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamPendingException;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The streams of the cluster. Streams that were read are cached: only their names and numbers of partitions are used, which
 * never change. Thread-safe.
 */
public final class StreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(StreamRegistry.class);

    private static final long COMPARE_AFTER_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Shards shards;
    private final Map<String, StreamSpec> known = new ConcurrentHashMap<>();
    /** When streams were last looked up because a caller had found nothing (nano time). */
    private final Map<String, Long> comparedNanos = new ConcurrentHashMap<>();

    public StreamRegistry(Shards shards) {
        this.shards = shards;
        shards.all().forEach(shard -> {
            shard.addAnchors(this::forgetVanished);
            shard.streams().createFrom(remembered -> findElsewhere(remembered.name(), shard));
            shard.streams().onCreatedAnew(this::forget);
        });
    }

    /**
     * Forgets the streams that neither the shard nor another one has any more: publishing to them fails, as to any unknown
     * stream. A stream that only this shard has lost is created there again.
     */
    private Runnable forgetVanished(Shard shard) throws SQLException {
        Set<String> stored = new HashSet<>();
        shard.require()
                .read(c -> shard.tables().streams().findAll(c))
                .forEach(row -> stored.add(row.spec().name()));
        List<String> missing =
                known.keySet().stream().filter(name -> !stored.contains(name)).toList();
        List<String> vanished =
                missing.stream().filter(name -> !mayExistElsewhere(name, shard)).toList();
        vanished.forEach(name -> {
            known.remove(name);
            shards.all().forEach(each -> each.streams().forget(name));
        });
        return () -> {
            for (String name : missing) {
                if (vanished.contains(name)) {
                    LOG.error(
                            "Stream {} no longer exists on {}: the database was restored to a time before it",
                            name,
                            shard);
                } else {
                    LOG.error("Stream {} no longer exists on {}; it is created again when it is used", name, shard);
                }
            }
        };
    }

    private boolean mayExistElsewhere(String stream, Shard without) {
        try {
            return findElsewhere(stream, without).isPresent();
        } catch (StreamPendingException e) {
            LOG.debug("Stream {} may exist elsewhere", stream, e);
            return true;
        }
    }

    /**
     * Returns a stream as a shard other than {@code without} has it. Only that is its definition: what a process remembers may be a
     * former stream of this name.
     *
     * @throws StreamPendingException if only an unavailable shard may have it
     */
    private Optional<StreamSpec> findElsewhere(String stream, Shard without) throws StreamPendingException {
        @Nullable Shard unavailable = null;
        for (Shard shard : shards.all()) {
            if (shard == without) {
                continue;
            }
            if (!shard.isHealthy()) {
                unavailable = shard;
                continue;
            }
            try {
                Optional<StreamTable.Row> row = shard.streams().find(stream);
                if (row.isPresent()) {
                    return Optional.of(row.get().spec());
                }
            } catch (SQLException e) {
                LOG.debug("Stream {} may exist on {}, which is unavailable", stream, shard, e);
                markIfUnavailable(shard, e);
                unavailable = shard;
            }
        }
        if (unavailable != null) {
            throw new StreamPendingException("stream " + stream + " may exist on " + unavailable
                    + ", which is unavailable; " + without + " gets it when that is back");
        }
        return Optional.empty();
    }

    /** Until the shard responds, no append and no relay waits for it again in order to look up a stream. */
    private static void markIfUnavailable(Shard shard, SQLException e) {
        ErrorKind kind = SqlErrors.classify(e);
        if (shard.isHealthy() && (kind == ErrorKind.NOT_SENT || kind == ErrorKind.IN_DOUBT)) {
            shard.setHealthy(false);
        }
    }

    /**
     * Creates the stream on every shard that does not have it. A shard that is unavailable gets an existing stream as
     * soon as it is back. An existing stream keeps its settings.
     *
     * @throws InvalidInputException if the stream exists with other partitions
     * @throws EventSqlException if the stream is new and a shard is unavailable; retry the call
     */
    public void create(StreamSpec stream) {
        Optional<StreamSpec> stored = findStored(stream);
        boolean existed = stored.isPresent();
        stored.ifPresent(spec -> warnOfOtherSettings(stream, spec));
        StreamSpec created = stored.orElse(stream);
        boolean isPlaced = false;
        @Nullable SQLException failure = null;
        @Nullable Shard failed = null;
        for (Shard shard : shards.all()) {
            try {
                StreamTable.Row row = shard.streams().create(created);
                warnOfOtherSettings(created, row.spec());
                created = row.spec();
                isPlaced |= !row.isPlacedElsewhere();
                requireSamePartitions(stream, created);
            } catch (SQLException e) {
                failure = e;
                failed = shard;
            }
        }
        if (failure != null && !existed) {
            throw new EventSqlException(
                    "Stream " + stream.name() + " could not be created on " + failed + ": " + failure.getMessage(),
                    failure);
        }
        if (failure != null) {
            LOG.warn("Shard {} is unavailable; it gets stream {} when it is back", failed, stream.name());
        }
        if (isPlaced) {
            known.put(stream.name(), created);
        }
    }

    /** Returns the stream as it is on the first shard that has it. */
    private Optional<StreamSpec> findStored(StreamSpec stream) {
        Optional<StreamSpec> stored = Optional.empty();
        for (Shard shard : shards.all()) {
            try {
                Optional<StreamTable.Row> row = shard.streams().find(stream.name());
                row.ifPresent(existing -> requireSamePartitions(stream, existing.spec()));
                stored = stored.or(() -> row.map(StreamTable.Row::spec));
            } catch (SQLException e) { // creating it there fails, too
                LOG.debug("Stream {} could not be read on {}", stream.name(), shard, e);
            }
        }
        return stored;
    }

    private static void requireSamePartitions(StreamSpec requested, StreamSpec existing) {
        if (requested.partitions() != existing.partitions()) {
            throw new InvalidInputException(
                    "stream.partitions",
                    "of the existing stream " + requested.name() + " is " + existing.partitions()
                            + " and cannot become " + requested.partitions());
        }
    }

    private static void warnOfOtherSettings(StreamSpec requested, StreamSpec existing) {
        List<String> differing = new ArrayList<>();
        addIfDiffering(differing, "segmentSize", requested.segmentSize(), existing.segmentSize());
        addIfDiffering(differing, "json", requested.json(), existing.json());
        addIfDiffering(differing, "retention", requested.retention(), existing.retention());
        addIfDiffering(differing, "compaction", requested.compaction(), existing.compaction());
        addIfDiffering(differing, "storage", requested.storage(), existing.storage());
        addIfDiffering(differing, "keyTracking", requested.keyTracking(), existing.keyTracking());
        if (!differing.isEmpty()) {
            LOG.warn(
                    "Stream {} exists with other settings, which it keeps: {}. EventSql.alterStream changes them, except"
                            + " the storage and the key tracking",
                    requested.name(),
                    String.join(", ", differing));
        }
    }

    private static void addIfDiffering(
            List<String> differing, String field, @Nullable Object requested, @Nullable Object existing) {
        if (!Objects.equals(requested, existing)) {
            differing.add(field + " is " + existing + ", not " + requested);
        }
    }

    /**
     * Changes all that can be changed of a stream, on every shard. A shard that lacks the stream gets it.
     *
     * @throws InvalidInputException if the stream has other partitions, another storage, or another key tracking
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard could not be changed; retry the call
     */
    public void alter(StreamSpec stream) {
        StreamSpec existing = require(stream.name());
        requireSamePartitions(stream, existing);
        if (stream.storage() != existing.storage()) {
            throw new InvalidInputException(
                    "stream.storage",
                    "of the existing stream " + stream.name() + " is " + existing.storage() + " and cannot become "
                            + stream.storage());
        }
        if (stream.keyTracking() != existing.keyTracking()) {
            throw new InvalidInputException(
                    "stream.keyTracking",
                    "of the existing stream " + stream.name() + " is " + existing.keyTracking() + " and cannot become "
                            + stream.keyTracking());
        }
        if (stream.compaction() != null && shards.haveMoved()) {
            requireUnmoved(stream);
        }
        shards.requireAllGiven("Stream " + stream.name() + " was not changed");
        List<String> failed = new ArrayList<>();
        @Nullable SQLException failure = null;
        for (Shard shard : shards.all()) {
            try {
                shard.streams().alter(stream);
                known.put(stream.name(), stream);
            } catch (SQLException e) {
                failed.add(shard.name() + ": " + e.getMessage());
                failure = e;
            }
        }
        if (failure != null) {
            throw new EventSqlException(
                    "Stream " + stream.name() + " was not changed on " + String.join(", on ", failed)
                            + "; retry the call",
                    failure);
        }
    }

    /** Rejects compaction before any shard is changed; each database rejects it, too. */
    private void requireUnmoved(StreamSpec stream) {
        for (Shard shard : shards.all()) {
            try {
                Optional<StreamTable.Row> row = shard.streams().find(stream.name());
                if (row.isPresent()
                        && row.get().spec().compaction() == null
                        && shard.streams().map(stream).hasMoved()) {
                    throw new InvalidInputException(
                            "stream.compaction",
                            "is not possible, because keys of stream " + stream.name()
                                    + " have moved between shards: a former shard would keep an event of each");
                }
            } catch (SQLException e) { // changing it there fails, too
                LOG.debug("Stream {} could not be read on {}", stream.name(), shard, e);
            }
        }
    }

    /**
     * Returns the stream of that name. Once it has, this process knows where its keys belong, if they stay there: it does not ask a
     * shard that may not know that.
     *
     * @throws UnknownStreamException if there is none
     * @throws EventSqlException if no shard is available
     */
    public StreamSpec require(String name) {
        try {
            return require(name, valid -> Optional.empty());
        } catch (SQLException e) {
            throw new IllegalStateException("no connection was used", e);
        }
    }

    /** Looks up a stream by its name, and remembers where its keys belong; empty if it cannot. */
    @FunctionalInterface
    public interface Lookup {
        Optional<StreamSpec> find(String name) throws SQLException;
    }

    /**
     * Returns the stream of that name as {@link #require(String)} does, but queries {@code first} before the shards: a
     * caller that holds a connection already may not get a second one.
     *
     * @throws SQLException if {@code first} fails
     */
    public StreamSpec require(String name, Lookup first) throws SQLException {
        return require(name, first, shard -> true);
    }

    /**
     * Returns the stream of that name as {@link #require(String)} does, for events of an outbox; the shard has it then. Waits for no
     * other shard that is known to be unavailable.
     *
     * @param shard {@code null}: none, because the outbox is standalone
     * @throws UnknownStreamException if no shard has the stream, or this one is deleting it
     * @throws StreamPendingException if the shard lacks the stream and cannot get it yet
     * @throws SQLException if the shard is unavailable, or {@link SqlErrors#NO_PARTITION} if the stream was created anew; retry the call
     */
    public StreamSpec requireOn(@Nullable Shard shard, String name) throws SQLException {
        try {
            StreamSpec stream = require(name, valid -> Optional.empty(), other -> other == shard || other.isHealthy());
            if (shard != null) {
                shard.streams().ensure(stream);
            }
            return stream;
        } catch (UnknownStreamException | StreamPendingException e) {
            throw e;
        } catch (EventSqlException | SQLException e) {
            String state = e instanceof SQLException failure ? SqlErrors.state(failure) : "";
            if (state.equals(SqlErrors.STREAM_BEING_DELETED)) {
                throw new UnknownStreamException(name);
            }
            if (state.equals(SqlErrors.NO_PARTITION) || (shard != null && isPlacedOn(shard, name))) {
                throw e;
            }
            throw new StreamPendingException(e);
        }
    }

    private static boolean isPlacedOn(Shard shard, String stream) throws SQLException {
        return shard.streams()
                .find(stream)
                .filter(row -> !row.isPlacedElsewhere())
                .isPresent();
    }

    /** @param asked the shards that are queried; the others count as unavailable */
    private StreamSpec require(String name, Lookup first, Predicate<Shard> asked) throws SQLException {
        StreamSpec stream = known.get(name);
        if (stream != null) {
            return stream;
        }
        if (!isValidName(name)) {
            throw new UnknownStreamException(name);
        }
        Optional<StreamSpec> found = first.find(name);
        if (found.isPresent()) {
            known.put(name, found.get());
            return found.get();
        }
        @Nullable SQLException failure = null;
        @Nullable Shard failed = null;
        boolean answered = false;
        for (Shard shard : shards.all()) {
            if (!asked.test(shard)) {
                failed = shard;
                continue;
            }
            try {
                Optional<StreamTable.Row> row = shard.streams().find(name);
                if (row.isPresent() && row.get().isPlacedElsewhere()) {
                    continue;
                }
                answered = true;
                if (row.isPresent()) {
                    known.put(name, row.get().spec());
                    return row.get().spec();
                }
            } catch (SQLException e) {
                markIfUnavailable(shard, e);
                failure = e;
                failed = shard;
            }
        }
        if (!answered) {
            throw new EventSqlException("Stream " + name + " could not be read: no shard is available", failure);
        } else if (failed != null) { // the others may lack it: one has no keys yet, or was down when it was created
            throw new EventSqlException(
                    "Stream " + name + " could not be read: " + failed
                            + " is unavailable, and the others do not have it",
                    failure);
        }
        throw new UnknownStreamException(name);
    }

    /** Forgets a stream because a shard does not have it: it may have been dropped. */
    public void forget(String name) {
        known.remove(name);
    }

    /**
     * Returns the stream as {@link #require(String)} does, but not as it was more than a second ago: for a caller that has found
     * nothing, because another process may have deleted the stream, or created it anew.
     */
    public StreamSpec requireCurrent(String name) {
        long now = System.nanoTime();
        Long before = comparedNanos.get(name);
        if (before == null || now - before > COMPARE_AFTER_NANOS) {
            comparedNanos.put(name, now);
            forget(name);
        }
        return require(name);
    }

    /** Returns whether the name is valid: the databases are queried only for those. */
    private static boolean isValidName(String name) {
        try {
            return StreamSpec.of(name).name().equals(name);
        } catch (InvalidInputException e) {
            LOG.debug("Invalid stream name", e);
            return false;
        }
    }

    /** Returns all streams, by name. */
    public List<StreamSpec> all() {
        Map<String, StreamSpec> streams = new TreeMap<>();
        @Nullable SQLException failure = null;
        for (Shard shard : shards.all()) {
            try {
                List<StreamTable.Row> rows =
                        shard.require().read(c -> shard.tables().streams().findAll(c));
                rows.forEach(row -> streams.put(row.spec().name(), row.spec()));
            } catch (SQLException e) {
                failure = e;
            }
        }
        if (failure != null && streams.isEmpty()) {
            throw new EventSqlException("The streams could not be read: " + failure.getMessage(), failure);
        }
        return new ArrayList<>(streams.values());
    }
}
