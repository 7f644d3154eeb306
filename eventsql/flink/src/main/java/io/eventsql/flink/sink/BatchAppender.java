package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.Target;
import io.eventsql.flink.sink.SinkDatabase.WrongDatabaseException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Appends batches, again under the same numbers until the databases have confirmed them. A shard that is unavailable does not
 * keep back the batches of the others. Used by one thread.
 */
final class BatchAppender implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BatchAppender.class);
    private static final Duration ROUTES_AGE_MAX = Duration.ofSeconds(10);
    private static final Duration RETRY_DELAY_MIN = Duration.ofMillis(20);
    private static final Duration RETRY_DELAY_MAX = Duration.ofSeconds(1);
    /** The order in which a partition accepts the batches of a producer. */
    private static final Comparator<EventBatch> BY_NUMBER =
            Comparator.comparing(EventBatch::producer).thenComparingLong(EventBatch::number);

    private final SinkSettings settings;
    private final @Nullable String rememberedAs;
    private final SinkCluster cluster;
    /** Identifies this appender in signals to consumers. */
    private final String sender = UUID.randomUUID().toString();

    private @Nullable KeyRoutes routes;
    private long routesFoundAt;
    /** Whether no batch was rejected because of its map since the routes were found. */
    private boolean areRoutesValid;

    BatchAppender(SinkSettings settings) {
        this.settings = settings;
        this.rememberedAs = settings.isExactlyOnce() ? settings.sink() : null;
        this.cluster = new SinkCluster(settings);
    }

    /**
     * Returns where the events of the stream go now.
     *
     * @throws IOException if the databases were unavailable for the failure timeout, or are not those of the stream
     */
    KeyRoutes findRoutes() throws IOException, InterruptedException {
        Retries retries = new Retries();
        while (true) {
            try {
                return remember(cluster.findRoutes());
            } catch (SQLException e) {
                retries.awaitNext("Reading the partitions", e);
            }
        }
    }

    private KeyRoutes remember(KeyRoutes found) {
        routes = found;
        routesFoundAt = System.nanoTime();
        areRoutesValid = true;
        return found;
    }

    /**
     * Returns where later events go: asks again after a while, and after a rejection because of the map. While no database responds, the former routes; a batch that was
     * routed by an old map is routed anew when it is appended.
     */
    KeyRoutes refreshedRoutes() {
        KeyRoutes known = Objects.requireNonNull(routes, "routes");
        if (areRoutesValid && System.nanoTime() - routesFoundAt < ROUTES_AGE_MAX.toNanos()) {
            return known;
        }
        try {
            return remember(cluster.findRoutes());
        } catch (SQLException e) {
            LOG.debug("Reading the partitions failed for {}; keeping the former ones", settings, e);
            return remember(known);
        }
    }

    /**
     * Appends batches: those of a producer and a partition in the order of their numbers.
     *
     * @throws IOException if some are not stored, or may not be: a database was unavailable for the failure timeout, or rejected
     *     one. All of them may be appended again.
     */
    void append(List<EventBatch> batches) throws IOException, InterruptedException {
        Retries retries = new Retries();
        Map<Integer, List<EventBatch>> left = new LinkedHashMap<>();
        batches.stream()
                .sorted(BY_NUMBER)
                .forEach(batch -> left.computeIfAbsent(batch.target().shard(), shard -> new ArrayList<>())
                        .add(batch));
        while (true) {
            SQLException failure = null;
            for (Map.Entry<Integer, List<EventBatch>> ofShard : left.entrySet()) {
                try {
                    append(ofShard.getKey(), ofShard.getValue());
                } catch (SQLException e) {
                    requireTransient("Appending to shard " + ofShard.getKey(), e);
                    failure = e;
                }
            }
            left.values().removeIf(List::isEmpty);
            if (failure == null) {
                return;
            }
            retries.awaitNext("Appending to shard " + left.keySet(), failure);
        }
    }

    /** Appends the batches of a shard, and removes from the list what is stored. */
    private void append(int shard, List<EventBatch> batches) throws SQLException {
        Map<Target, EventBatch> stored = new HashMap<>();
        try {
            while (!batches.isEmpty()) {
                append(batches.get(0), stored, new HashSet<>());
                batches.remove(0);
            }
        } finally {
            signal(shard, stored);
        }
    }

    /** A partition, and the version of the map by which events were sent there. */
    private record Route(Target target, int mapVersion) {}

    /** @param rejected the routes of the batches that it is a part of */
    private void append(EventBatch batch, Map<Target, EventBatch> stored, Set<Route> rejected) throws SQLException {
        SinkDatabase database = cluster.shard(batch.target().shard());
        try {
            if (database.append(rememberedAs, batch)) {
                stored.put(batch.target(), batch);
            }
        } catch (SQLException e) {
            if (!SinkErrors.state(e).equals(SinkErrors.MAP_VERSION)) {
                throw e;
            }
            areRoutesValid = false;
            Route route = new Route(batch.target(), batch.mapVersion());
            if (!rejected.add(route)) { // while keys move, two shards may say of each other that the keys belong there
                throw beingChanged(e);
            }
            for (EventBatch part : partsByNextMap(batch, e)) {
                append(part, stored, rejected);
            }
            rejected.remove(route);
        }
    }

    /**
     * Returns the events of a batch that is not stored, and never will be, because the map has another version: as batches for the
     * partitions that their keys belonged to by the map that followed. Each is stored, or is not and never will be, too, if the
     * map has changed again. Their producer follows from the batch, so they are recognised when the batch is committed again.
     */
    private List<EventBatch> partsByNextMap(EventBatch batch, SQLException rejection) throws SQLException {
        KeyRoutes next = cluster.findNextRoutes(batch);
        Target target = batch.target();
        if (next.mapVersion(target) == batch.mapVersion()) {
            throw beingChanged(rejection);
        }
        String name = batch.producer() + " " + target.shard() + " " + target.partition() + " " + batch.number();
        UUID producer = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
        Target withoutKey = next.hasSlots(target.shard()) ? target : next.ofTurn(target.partition());
        Map<Target, List<EncodedEvent>> parts = new LinkedHashMap<>();
        for (EncodedEvent event : batch.events()) {
            String key = event.key();
            parts.computeIfAbsent(key == null ? withoutKey : next.of(key), any -> new ArrayList<>())
                    .add(event);
        }
        LOG.info("Routing {} anew: by map {}, not {}", batch, next.mapVersion(target), batch.mapVersion());
        return parts.entrySet().stream()
                .map(part -> new EventBatch(
                        producer, 1, batch.stream(), part.getKey(), next.mapVersion(part.getKey()), part.getValue()))
                .toList();
    }

    /** Returns an error that passes. */
    private static SQLException beingChanged(SQLException rejection) {
        return new SQLException(
                "The map of the partitions is being changed: " + SinkErrors.message(rejection), "55P03", rejection);
    }

    /** Consumers poll, too: a signal that is not sent delays them. */
    private void signal(int shard, Map<Target, EventBatch> stored) {
        List<EventBatch> there = stored.values().stream()
                .filter(batch -> batch.target().shard() == shard)
                .toList();
        if (there.isEmpty()) {
            return;
        }
        try {
            cluster.shard(shard).signal(sender, there);
        } catch (SQLException e) {
            LOG.debug("Signalling consumers on shard {} failed; they find the events when they poll", shard, e);
        }
    }

    private void requireTransient(String action, SQLException e) throws IOException {
        if (e instanceof WrongDatabaseException || !SinkErrors.isTransient(e)) {
            throw new IOException(action + " failed for " + settings + ": " + SinkErrors.message(e), e);
        }
    }

    /** Retries until the failure timeout, with a growing delay. */
    private final class Retries {
        private final long start = System.nanoTime();
        private final Set<String> logged = new HashSet<>();
        private long delayMs = RETRY_DELAY_MIN.toMillis();

        void awaitNext(String action, SQLException e) throws IOException, InterruptedException {
            requireTransient(action, e);
            if (System.nanoTime() - start > settings.failureTimeout().toNanos()) {
                throw new IOException(
                        action + " failed for " + settings.failureTimeout() + ", for " + settings + ": "
                                + SinkErrors.message(e),
                        e);
            }
            if (logged.add(SinkErrors.state(e))) {
                LOG.warn(
                        "{} failed for {}; retrying for {}: {}",
                        action,
                        settings,
                        settings.failureTimeout(),
                        SinkErrors.message(e));
            }
            Thread.sleep(delayMs);
            delayMs = Math.min(2 * delayMs, RETRY_DELAY_MAX.toMillis());
        }
    }

    @Override
    public void close() {
        cluster.close();
    }
}
