package io.eventsql.spring;

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
     * @param declared the streams that the application says it has
     * @param createMissing whether a stream that is used and neither declared nor there is created with defaults
     * @throws InvalidInputException if a stream is declared twice, differently
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
     * Creates the declared streams that are not there.
     *
     * @throws InvalidInputException if one exists with other values
     * @throws io.eventsql.EventSqlException if one is new and a shard does not answer
     */
    public void createDeclared() {
        declared.values().forEach(eventSql::createStream);
    }

    /**
     * Creates a stream that is about to be used, if it is not there and missing ones are to be created.
     *
     * @throws UnknownStreamException if it is not there and not to be created
     * @throws InvalidInputException if no stream can have this name
     */
    public void require(String stream) {
        if (eventSql.streams().stream().anyMatch(existing -> existing.name().equals(stream))) {
            return;
        }
        if (!createMissing) {
            throw new UnknownStreamException(stream);
        }
        StreamSpec missing = declared.getOrDefault(stream, StreamSpec.of(stream));
        eventSql.createStream(missing);
        LOG.info("Created {}, which did not exist (eventsql.create-missing-streams)", missing);
    }
}
