package io.eventsql.kafka.connect;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** What a worker does for a connector and its tasks, in the test's thread: it keeps the offsets of written records. */
final class TestWorker {
    private final Map<Map<String, ?>, Map<String, ?>> offsets = new HashMap<>();
    final AtomicInteger reconfigurations = new AtomicInteger();
    final List<Exception> errors = new CopyOnWriteArrayList<>();

    private final OffsetStorageReader storage = new OffsetStorageReader() {
        @Override
        public <T> Map<String, Object> offset(Map<String, T> partition) {
            return offsets(List.of(partition)).get(partition);
        }

        @Override
        public <T> Map<Map<String, T>, Map<String, Object>> offsets(Collection<Map<String, T>> partitions) {
            Map<Map<String, T>, Map<String, Object>> found = new HashMap<>();
            for (Map<String, T> partition : partitions) {
                Map<String, ?> stored = offsets.get(partition);
                if (stored != null) {
                    found.put(partition, new HashMap<>(stored));
                }
            }
            return found;
        }
    };

    /** Returns a connector that is started. */
    EventSqlSourceConnector connector(Map<String, String> properties) {
        EventSqlSourceConnector connector = new EventSqlSourceConnector();
        connector.initialize(new SourceConnectorContext() {
            @Override
            public OffsetStorageReader offsetStorageReader() {
                return storage;
            }

            @Override
            public void requestTaskReconfiguration() {
                reconfigurations.incrementAndGet();
            }

            @Override
            public void raiseError(Exception e) {
                errors.add(e);
            }

            @Override
            public PluginMetrics pluginMetrics() {
                throw new UnsupportedOperationException();
            }
        });
        connector.start(properties);
        return connector;
    }

    /** Returns a task that is started. */
    EventSqlSourceTask task(Map<String, String> properties) {
        EventSqlSourceTask task = new EventSqlSourceTask();
        task.initialize(new SourceTaskContext() {
            @Override
            public Map<String, String> configs() {
                return properties;
            }

            @Override
            public OffsetStorageReader offsetStorageReader() {
                return storage;
            }

            @Override
            public PluginMetrics pluginMetrics() {
                throw new UnsupportedOperationException();
            }
        });
        task.start(properties);
        return task;
    }

    /** Polls until so many records have arrived, and stores their offsets. */
    List<SourceRecord> write(EventSqlSourceTask task, int count) throws InterruptedException {
        List<SourceRecord> written = new ArrayList<>();
        while (written.size() < count) {
            for (SourceRecord polled : poll(task)) {
                written.add(polled);
                offsets.put(polled.sourcePartition(), polled.sourceOffset());
            }
        }
        return written;
    }

    /** Polls once, as a worker does. */
    static List<SourceRecord> poll(EventSqlSourceTask task) throws InterruptedException {
        try {
            List<SourceRecord> records = task.poll();
            return records == null ? List.of() : records;
        } catch (RetriableException e) {
            return List.of();
        }
    }

    /** Runs all tasks of a connector once, until so many records have arrived. */
    List<SourceRecord> writeAll(Map<String, String> properties, int tasksMax, int count) throws InterruptedException {
        EventSqlSourceConnector connector = connector(properties);
        List<EventSqlSourceTask> tasks = new ArrayList<>();
        try {
            for (Map<String, String> configuration : connector.taskConfigs(tasksMax)) {
                tasks.add(task(configuration));
            }
            List<SourceRecord> written = new ArrayList<>();
            while (written.size() < count) {
                for (EventSqlSourceTask task : tasks) {
                    for (SourceRecord polled : poll(task)) {
                        written.add(polled);
                        offsets.put(polled.sourcePartition(), polled.sourceOffset());
                    }
                }
            }
            return written;
        } finally {
            tasks.forEach(Task::stop);
            connector.stop();
        }
    }
}
