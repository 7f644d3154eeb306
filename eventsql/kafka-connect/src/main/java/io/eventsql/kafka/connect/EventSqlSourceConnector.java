package io.eventsql.kafka.connect;

import io.eventsql.reader.DatabaseUnavailableException;
import io.eventsql.reader.EventReaderException;
import io.eventsql.reader.StreamPartition;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.util.ConnectorUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A source connector: writes the events of streams to topics. Exactly once on a worker with {@code
 * exactly.once.source.support}, else at least once. The tasks share the partitions of the streams. Created and called by
 * Connect.
 */
public final class EventSqlSourceConnector extends SourceConnector {
    private static final Logger LOG = LoggerFactory.getLogger(EventSqlSourceConnector.class);
    /** That of the jar. */
    static final String VERSION = Objects.requireNonNullElse(
            EventSqlSourceConnector.class.getPackage().getImplementationVersion(), "unknown");

    private Map<String, String> properties = Map.of();
    private @Nullable PartitionDiscovery discovery;

    /** Called by Connect. */
    public EventSqlSourceConnector() {}

    @Override
    public String version() {
        return VERSION;
    }

    @Override
    public ConfigDef config() {
        return ConnectorConfig.DEFINITION;
    }

    /**
     * Checks the databases and the streams.
     *
     * @throws ConnectException if the connector cannot work as configured. Databases that are unavailable are no reason:
     *     Connect asks for the tasks again.
     */
    @Override
    public void start(Map<String, String> newProperties) {
        properties = Map.copyOf(newProperties);
        ConnectorConfig config = ConnectorConfig.ofConnector(newProperties);
        SourceConnectorContext worker = context();
        PartitionDiscovery started =
                new PartitionDiscovery(config, worker::requestTaskReconfiguration, worker::raiseError);
        discovery = started;
        try {
            started.find();
        } catch (DatabaseUnavailableException e) {
            LOG.warn("A database of {} is unavailable; retrying: {}", config.source(), e.getMessage());
        } catch (EventReaderException | IllegalArgumentException e) {
            started.close();
            throw new ConnectException(e.getMessage(), e);
        }
    }

    @Override
    public Class<? extends Task> taskClass() {
        return EventSqlSourceTask.class;
    }

    /**
     * Returns the configurations of at most as many tasks, each with a fair share of the partitions.
     *
     * @throws RetriableException if a database is unavailable; running tasks continue
     */
    @Override
    public List<Map<String, String>> taskConfigs(int tasksMax) {
        PartitionDiscovery current = discovery;
        if (current == null) {
            throw new ConnectException("The connector was not started");
        }
        List<StreamPartition> partitions;
        try {
            partitions = current.assign();
        } catch (DatabaseUnavailableException e) {
            throw new RetriableException(e.getMessage(), e);
        } catch (EventReaderException e) {
            throw new ConnectException(e.getMessage(), e);
        }
        List<String> names = partitions.stream().map(SourcePartitions::name).toList();
        List<Map<String, String>> tasks = new ArrayList<>();
        for (List<String> group : ConnectorUtils.groupPartitions(names, Math.min(tasksMax, names.size()))) {
            Map<String, String> task = new HashMap<>(properties);
            task.put(ConnectorConfig.TASK_PARTITIONS, String.join(",", group));
            tasks.add(task);
        }
        return tasks;
    }

    @Override
    public void stop() {
        PartitionDiscovery current = discovery;
        if (current != null) {
            current.close();
        }
    }

    /** Returns that source offsets are exact: each event has its own, and a task continues after the last one stored. */
    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> connectorProperties) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    /** Returns that a transaction is what a task polls at once ({@code transaction.boundary=poll}, Connect's default). */
    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> connectorProperties) {
        return ConnectorTransactionBoundaries.UNSUPPORTED;
    }

    /**
     * Allows operators to set or reset offsets while the connector is stopped.
     *
     * @throws ConnectException if an offset is invalid
     */
    @Override
    public boolean alterOffsets(Map<String, String> connectorProperties, Map<Map<String, ?>, Map<String, ?>> offsets) {
        SourcePartitions.requireValid(offsets);
        return true;
    }
}
