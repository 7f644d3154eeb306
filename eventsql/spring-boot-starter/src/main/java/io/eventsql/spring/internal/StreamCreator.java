package io.eventsql.spring.internal;

import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates the streams that an application declares or uses. Thread-safe. */
public final class StreamCreator {
    private static final Logger LOG = LoggerFactory.getLogger(StreamCreator.class);

    private final EventSql eventSql;
    private final Map<String, StreamSpec> declared = new LinkedHashMap<>();
    private final boolean createMissing;

    /**
     * @param declared the application's streams
     * @param createMissing whether a stream that is used, not declared and does not exist is created with the defaults
     * @throws InvalidInputException if a stream is declared twice with different values
     */
    public StreamCreator(EventSql eventSql, Collection<StreamSpec> declared, boolean createMissing) {
        this.eventSql = eventSql;
        this.createMissing = createMissing;
        for (StreamSpec stream : declared) {
            StreamSpec other = this.declared.putIfAbsent(stream.name(), stream);
            if (other != null && !other.equals(stream)) {
                throw new InvalidInputException(
                        "stream.name", "'" + stream.name() + "' is declared twice, as " + other + " and as " + stream);
            }
        }
    }

    /**
     * Creates the declared streams that do not exist.
     *
     * @throws InvalidInputException if one exists with other values
     * @throws io.eventsql.EventSqlException if one is new and a shard is unavailable
     */
    public void createDeclared() {
        declared.values().forEach(eventSql::createStream);
    }

    /**
     * Creates a stream that is about to be used, if it does not exist and missing ones are to be created.
     *
     * @throws UnknownStreamException if it does not exist and is not to be created; names the remedies
     * @throws InvalidInputException if the name is not valid
     */
    public void createIfMissing(String stream) {
        if (eventSql.streams().stream().anyMatch(existing -> existing.name().equals(stream))) {
            return;
        }
        if (!createMissing) {
            throw new UnknownStreamException(
                    stream,
                    "declare it with a StreamSpec bean or eventsql.streams[" + stream
                            + "].partitions=10, or set eventsql.create-missing-streams=true");
        }
        StreamSpec missing = declared.getOrDefault(stream, StreamSpec.of(stream));
        eventSql.createStream(missing);
        LOG.info("Created {}, which did not exist (eventsql.create-missing-streams=true)", missing);
    }
}
