package io.eventsql.runner.phases;

/**
 * The counts of one replayer of one stream.
 *
 * @param stream the stream
 * @param replayer the replayer
 * @param passes the completed passes, from the start of the stream to its end at the time the pass started
 * @param events the events of all passes, including the unfinished one
 */
public record ReplayerCounts(String stream, String replayer, long passes, long events) {}
