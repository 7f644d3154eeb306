package io.eventsql.app;

import io.eventsql.ConsumerSpec;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.InvalidSettingException;
import io.eventsql.benchmark.settings.Variables;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The settings of the app, except for the HTTP port, which Spring Boot reads from {@code SERVER_PORT}.
 *
 * @param stream the stream to consume: {@code STREAM} and {@code PARTITIONS}
 * @param consumer the consumer and its page size: {@code CONSUMER} and {@code PAGE_EVENTS}
 * @param shards the databases, one per shard, see {@link DatabaseVariables}
 * @param poolSize the connections to each database: {@code DB_POOL_SIZE}
 * @param portFile the file to which the HTTP port is written: {@code PORT_FILE}, or {@code null}
 */
public record AppSettings(
        StreamSpec stream,
        ConsumerSpec consumer,
        List<DatabaseAddress> shards,
        int poolSize,
        @Nullable Path portFile) {
    public static final String DEFAULT_STREAM = "account_created";
    public static final String DEFAULT_CONSUMER = "app";
    public static final int DEFAULT_POOL_SIZE = 16;
    public static final int POOL_SIZE_MAX = 1_000;

    public AppSettings {
        shards = List.copyOf(shards);
    }

    /**
     * Reads the settings from variables.
     *
     * @throws InvalidSettingException if a variable is missing or invalid
     */
    public static AppSettings read(Variables variables) {
        String streamName = variables.text("STREAM", DEFAULT_STREAM);
        String consumerName = variables.text("CONSUMER", DEFAULT_CONSUMER);
        int partitions = variables.number("PARTITIONS", StreamSpec.DEFAULT_PARTITIONS, 1, StreamSpec.PARTITIONS_MAX);
        int pageEvents =
                variables.number("PAGE_EVENTS", ConsumerSpec.DEFAULT_PAGE_EVENTS, 1, ConsumerSpec.PAGE_EVENTS_MAX);
        StreamSpec stream = parseName("STREAM", () -> StreamSpec.of(streamName)).withPartitions(partitions);
        ConsumerSpec consumer = parseName("CONSUMER", () -> ConsumerSpec.of(streamName, consumerName))
                .withPageEvents(pageEvents);
        String portFile = variables.find("PORT_FILE");
        return new AppSettings(
                stream,
                consumer,
                DatabaseVariables.read(variables),
                variables.number("DB_POOL_SIZE", DEFAULT_POOL_SIZE, 1, POOL_SIZE_MAX),
                portFile == null ? null : Path.of(portFile));
    }

    /** Adds the variable's name to the library's validation error. */
    private static <T> T parseName(String variable, Supplier<T> spec) {
        try {
            return spec.get();
        } catch (InvalidInputException e) {
            throw new InvalidSettingException(variable, "is invalid: " + e.getMessage(), e);
        }
    }
}
