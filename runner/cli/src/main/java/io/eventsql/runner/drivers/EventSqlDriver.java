package io.eventsql.runner.drivers;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSqlTarget;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** EventSQL on the databases of the environment. Thread-safe. */
class EventSqlDriver implements Driver {

    private record StreamConsumer(String stream, String consumer) {}

    private final EventSqlOptions options;
    private final Databases databases;
    private final EventSql eventSql;
    /** Those of the consumers; empty if these use the publisher's. */
    private final List<EventSql> members = new ArrayList<>();

    private final Map<StreamConsumer, DeliveryListener> listeners = new ConcurrentHashMap<>();

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    EventSqlDriver(DriverSettings settings) {
        options = new EventSqlOptions(settings.options());
        Settings ofLibrary = options.settings();
        databases = Databases.open(DatabaseVariables.read(new Variables(settings.environment()::get)));
        try {
            eventSql = open(ofLibrary);
            for (int member = 0; member < options.members(); member++) {
                members.add(open(ofLibrary));
            }
        } catch (RuntimeException e) {
            databases.close();
            throw e;
        }
    }

    private EventSql open(Settings ofLibrary) {
        return EventSql.builder(databases.dataSources())
                .settings(ofLibrary)
                .listener(new FailureListener())
                .build();
    }

    /** Returns the publisher's library. */
    EventSql eventSql() {
        return eventSql;
    }

    /** Returns the pools in the order of the environment. */
    List<DataSource> dataSources() {
        return databases.dataSources();
    }

    @Override
    public String version() throws SQLException {
        SortedSet<String> versions = new TreeSet<>();
        for (ShardInfo shard : eventSql.shards()) {
            versions.add(ShardServerInfo.read(shard).serverVersion());
        }
        return "PostgreSQL " + String.join(", ", versions);
    }

    @Override
    public void createStream(String name, int partitions) {
        eventSql.createStream(options.stream(name, partitions));
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new EventSqlTarget(eventSql.publisher(), stream);
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
        StreamConsumer started = new StreamConsumer(stream, consumer);
        listeners.put(started, listener);
        ConsumerSpec spec = options.consumer(stream, consumer);
        List<Subscription> subscriptions = (members.isEmpty() ? List.of(eventSql) : members)
                .stream().map(member -> subscribe(member, spec, listener)).toList();
        return () -> {
            subscriptions.forEach(Subscription::close);
            listeners.remove(started);
        };
    }

    private Subscription subscribe(EventSql member, ConsumerSpec spec, DeliveryListener listener) {
        return options.handlesSingly()
                ? member.subscribe(spec, new SingleEventHandler(listener, options.handlerTime()))
                : member.subscribeBatch(
                        spec, events -> listener.delivered(events, StoredEvent::key, StoredEvent::value));
    }

    @Override
    public void clear(String stream) throws InterruptedException {
        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
    }

    @Override
    public void close() {
        members.forEach(EventSql::close);
        eventSql.close();
        databases.close();
    }

    /** Forwards failures of a consumer to its delivery listener. */
    private final class FailureListener implements ConsumerListener {
        @Override
        public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
            failed(listeners.get(new StreamConsumer(event.stream(), consumer)), error);
        }

        @Override
        public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
            failed(
                    listeners.get(new StreamConsumer(partition.stream(), partition.consumer())),
                    new IllegalStateException("stopped at offset " + nextOffset + ": " + error));
        }

        private void failed(@Nullable DeliveryListener listener, Throwable error) {
            if (listener != null) {
                listener.failed(error);
            }
        }
    }
}
