package io.eventsql.kafka.connect;

import io.eventsql.reader.EventReader;
import io.eventsql.reader.PartitionRange;
import io.eventsql.reader.ShardIdentityException;
import io.eventsql.reader.StreamPartition;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.connect.errors.ConnectException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds the partitions of the streams, and reports when there are others than before. Thread-safe. */
final class PartitionDiscovery implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionDiscovery.class);

    private final ConnectorConfig config;
    private final Runnable onChange;
    private final Consumer<ConnectException> onFailure;
    private final ScheduledExecutorService timer;
    /** The partitions that the tasks were given; empty before. */
    private volatile List<StreamPartition> assigned = List.of();
    /** Whether partitions were asked for, found or not. */
    private volatile boolean isAsked;

    private @Nullable EventReader reader;

    /**
     * Starts looking for other partitions once {@link #assign} was called.
     *
     * @param onChange called on a thread of its own, with each poll that finds other partitions than the tasks have, until
     *     they are assigned
     * @param onFailure called on the same thread if the databases given are not all that have events: the running tasks read
     *     the others, and would not notice
     */
    PartitionDiscovery(ConnectorConfig config, Runnable onChange, Consumer<ConnectException> onFailure) {
        this.config = config;
        this.onChange = onChange;
        this.onFailure = onFailure;
        this.timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "eventsql-partition-discovery");
            thread.setDaemon(true);
            return thread;
        });
        long intervalMs = config.discoveryInterval().toMillis();
        var unused = timer.scheduleWithFixedDelay(this::compare, intervalMs, intervalMs, TimeUnit.MILLISECONDS);
    }

    /** Returns the partitions of all streams, in order. Its exceptions are those of {@link EventReader#ranges}. */
    synchronized List<StreamPartition> find() {
        EventReader current = reader;
        if (current == null) {
            current = config.openReader();
            reader = current;
        }
        EventReader open = current;
        return config.streams().stream()
                .flatMap(stream -> open.ranges(stream).stream())
                .map(PartitionRange::partition)
                .sorted()
                .toList();
    }

    /**
     * Returns the partitions, and considers them assigned. If they cannot be found, the next poll that finds them reports
     * a change, because a standalone worker does not ask again by itself.
     */
    List<StreamPartition> assign() {
        isAsked = true;
        List<StreamPartition> found = find();
        if (config.keepsPartitions() && !found.equals(assigned)) {
            LOG.info(
                    "With {}=same, topics need these numbers of partitions; tasks wait silently for missing ones: {}",
                    ConnectorConfig.TOPIC_PARTITION,
                    config.topics().partitionsNeeded(found));
        }
        assigned = found;
        return found;
    }

    private void compare() {
        try {
            List<StreamPartition> before = assigned;
            if (isAsked && !find().equals(before)) {
                LOG.info("The partitions of {} are not those of its tasks, which are configured anew", config.source());
                onChange.run();
            }
        } catch (ShardIdentityException e) {
            onFailure.accept(
                    new ConnectException(e.getMessage() + ". Correct " + ConnectorConfig.URL + " of the connector", e));
        } catch (RuntimeException | Error e) { // the timer would end without a word
            LOG.warn(
                    "Looking for new partitions of {} failed; retrying in {}: {}",
                    config.source(),
                    config.discoveryInterval(),
                    e.toString());
        }
    }

    @Override
    public void close() {
        timer.shutdownNow();
        synchronized (this) {
            EventReader current = reader;
            if (current != null) {
                current.close();
            }
        }
    }
}
