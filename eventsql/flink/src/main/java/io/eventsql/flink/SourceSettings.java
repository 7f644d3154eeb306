package io.eventsql.flink;

import io.eventsql.reader.EventReader;
import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPosition;
import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a source reads, and how.
 *
 * @param urls the JDBC URLs of all shards, in any order
 * @param end where all partitions end; {@code null}: the source is unbounded
 * @param discoveryInterval how often an unbounded source looks for new partitions; zero: never
 * @param failureTimeout for how long a shard may be unavailable before the job fails
 */
record SourceSettings(
        List<String> urls,
        String user,
        String password,
        ReaderSettings reader,
        String stream,
        StreamPosition start,
        @Nullable StreamPosition end,
        Duration discoveryInterval,
        Duration failureTimeout)
        implements Serializable {

    boolean isBounded() {
        return end != null;
    }

    EventReader openReader() {
        return EventReader.connect(urls, user, password, reader);
    }

    /** Shows no password: URLs without their parameters, of which some are passwords. */
    @Override
    public String toString() {
        List<String> shownUrls =
                urls.stream().map(url -> url.replaceFirst("\\?.*", "")).toList();
        return "stream " + stream + " in " + shownUrls + " from " + start + (end == null ? "" : " until " + end);
    }
}
