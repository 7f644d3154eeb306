package io.eventsql.flink.sink;

import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import org.apache.flink.connector.base.DeliveryGuarantee;

/**
 * What a sink writes to, and how.
 *
 * @param urls the JDBC URLs of all shards, in any order
 * @param sink the name under which the databases remember what they have stored of it
 * @param bufferBytesMax the most bytes of events that a writer keeps between two checkpoints
 * @param flushInterval how long an event waits at most, if delivery is at least once
 * @param failureTimeout for how long a database may be unavailable before the job fails
 */
record SinkSettings(
        List<String> urls,
        String user,
        String password,
        String schema,
        String stream,
        String sink,
        DeliveryGuarantee guarantee,
        int eventBytesMax,
        long bufferBytesMax,
        Duration flushInterval,
        Duration networkTimeout,
        Duration failureTimeout)
        implements Serializable {

    boolean isExactlyOnce() {
        return guarantee == DeliveryGuarantee.EXACTLY_ONCE;
    }

    /** Shows no password: URLs without their parameters, of which some are passwords. */
    @Override
    public String toString() {
        List<String> shownUrls =
                urls.stream().map(url -> url.replaceFirst("\\?.*", "")).toList();
        return "stream " + stream + " in " + shownUrls + " by sink " + sink;
    }
}
