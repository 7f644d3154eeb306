package io.eventsql;

/**
 * What waits in this process to be appended to one shard, or is on its way there.
 *
 * @param shard the shard's number
 * @param name its name
 * @param bytes the sizes of the events
 * @param limitBytes {@link Settings#bufferBytes()}
 * @param waitingCalls calls that no batch has taken yet
 * @param blockedCallers threads that wait for room: more than none for long means that the shard is slower than its
 *     publishers
 */
public record BufferState(int shard, String name, long bytes, long limitBytes, int waitingCalls, int blockedCallers) {}
