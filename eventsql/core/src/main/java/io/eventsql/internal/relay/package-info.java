/**
 * Transactional publish: the outbox that an application's own transaction writes to, and the relay that moves what was
 * committed to the streams.
 *
 * <p>What always holds, whoever is killed or cut off at whatever moment:
 *
 * <ol>
 *   <li>An event is in exactly one of four places: the outbox, the transfer table, the refused table, its stream. It
 *       leaves one and enters the next in one transaction; only on its way to another database it is in two for a
 *       moment, under a number that the other database stores once.
 *   <li>Every transaction that moves events locks the relay's row first and fails unless holder and epoch are its own.
 *   <li>What is taken is what the DELETE returned, whatever is visible, in the order of the ids. Nothing is skipped
 *       because of its id.
 *   <li>A number in the transfer table is given under that lock: whatever becomes visible later has a higher one.
 *   <li>Another database takes a batch only directly behind the number that the sender believes to be the last one there.
 * </ol>
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.relay;

import org.jspecify.annotations.NullMarked;
