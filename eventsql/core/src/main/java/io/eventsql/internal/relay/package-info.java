/**
 * Transactional publish: the outbox, to which a transaction of the application writes, and the relay, which moves committed
 * events to their streams.
 *
 * <p>The relay also moves scheduled events when they are due, under the same lock and with the same code ({@code DueEvents}). For
 * the invariants, the table of scheduled events is another outbox, of which the relay takes what is due, in the order of due
 * times and ids.
 *
 * <p>Invariants, no matter which process is killed or disconnected at any point:
 *
 * <ol>
 *   <li>An event is in exactly one of four places: the outbox, the transfer table, the refused table, or its stream. It
 *       moves from one to the next in one transaction. Only while it is transferred to another database it is briefly in
 *       two places, under a number that the other database stores once.
 *   <li>Every transaction that moves events first locks the relay's row, and fails unless holder and epoch are its own.
 *   <li>The relay takes exactly the events that its DELETE returned, that is, all that are visible, in the order of their
 *       ids. No event is skipped because of its id.
 *   <li>Numbers in the transfer table are assigned under that lock: events that become visible later get higher ones.
 *   <li>An event is refused only after its transaction was rolled back: because its content was rejected, or because it
 *       failed repeatedly while another event of the same stream and shard did not.
 *   <li>Another database accepts a batch only if it directly follows the number that the sender assumes to be the last one
 *       there. It forgets a producer of the outbox only 30 days after it has registered a later one: events are sent in
 *       the order of their producers.
 *   <li>The events of a stream that a shard lacks and cannot get yet, because only an unavailable shard may have it, wait in the
 *       transfer table, also those for the outbox's own shard. Later events of their keys follow them there. All others are
 *       moved.
 * </ol>
 *
 * <p>No thread of the relay ends before it is closed ({@link io.eventsql.internal.thread.ServiceThread}), and none holds more
 * than one connection. A lease is dropped with every failure, so it never outlives the work.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.relay;

import org.jspecify.annotations.NullMarked;
