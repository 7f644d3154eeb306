package io.eventsql.runner.phases;

/**
 * What one replayer of one stream has read.
 *
 * @param stream the stream
 * @param replayer the replayer
 * @param passes how often it has read the stream from its start to where it ended when the pass began
 * @param events events of all passes, the unfinished one's too
 */
public record ReplayerCounts(String stream, String replayer, long passes, long events) {}
