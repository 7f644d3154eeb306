package io.eventsql;

/**
 * State of this process's publish buffer for one shard: the events that wait to be appended and those being appended.
 *
 * @param shard the shard's number
 * @param name the shard's name
 * @param bytes the size of these events
 * @param limitBytes {@link Settings#bufferBytes()}
 * @param waitingCalls calls not yet part of a batch
 * @param blockedCallers threads blocked because the buffer is full; above zero for long, the shard is slower than its
 *     publishers
 */
public record BufferState(int shard, String name, long bytes, long limitBytes, int waitingCalls, int blockedCallers) {}
