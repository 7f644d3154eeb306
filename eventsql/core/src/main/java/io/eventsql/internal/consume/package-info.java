/**
 * Consuming: from the stored row to the handler and the committed offset.
 *
 * <h2>From row to handler</h2>
 *
 * <pre>
 *   Fetcher ──page──▶ Assignment ◀──page── Dispatcher ──▶ OrderedPageHandler, KeyLanes
 *   one per shard     one per owned        one per          │
 *                     partition            ShardPipeline    ▼
 *                        ▲                               Attempts ──▶ HandlerCall ──▶ the application's handler
 *                        │ handled                          │
 *                        └──────────────────────────────────┤ failed for good
 *   CommitThread ──▶ OffsetCommitter                        ▼
 *   one per shard    one per ShardPipeline ◀─ FencedSteps ◀─ Failures, DeadLetters, Redrive
 * </pre>
 *
 * <p>What several members have handled is committed together ({@code SharedCommit}).
 *
 * <p>An {@code Assignment} keeps what is fetched ({@code PartitionPages}, within the member's {@code FetchBudget}) and what
 * is handled and committed ({@code PartitionProgress}, within the {@code HandlingWindow}). A page may have gaps, which
 * {@code MissingEvents} passes or stops at, and {@code UndecodableEvents}, which fail before their handler.
 *
 * <p>A {@code Member} is a running instance of a consumer. On each shard it has a {@code ShardPipeline}, which connects the
 * services of that shard; they receive their collaborators in constructors. {@code LeaseKeeper} decides which partitions
 * the member owns, by heartbeats ({@code HeartbeatTurns}, {@code HeartbeatSender}). {@code ShardMember}, {@code Assignment} and {@code Membership}
 * keep the state that services share and know none of them. A service signals a shard's thread through its schedule ({@code FetchSchedule}, {@code
 * HeartbeatSchedule}) and does not know the thread.
 *
 * <h2>States of a member on a shard ({@code ShardMember})</h2>
 *
 * <pre>
 *              first heartbeat
 *              answered                 close
 *   JOINING ──────────────▶ ACTIVE ───────────────▶ CLOSING ──────────────▶ LEAVING ────▶ LEFT
 *      │                                            ▲   │   deadline, or                  ▲
 *      └────────────────────────────────────────────┘   │   an attempt to leave failed    │
 *                        close                          └─────────────────────────────────┘
 *                                                           all handlers have ended
 * </pre>
 *
 * <p>A member whose consumer was deleted closes and is LEFT at once. Rules 5 to 7 of {@code docs/protocols.md} (release,
 * leave, share) define what a member may do in each state.
 *
 * <h2>States of an owned partition ({@code Assignment})</h2>
 *
 * <pre>
 *            surplus, paused,
 *            or the member closes             drained and released
 *   ACTIVE ─────────────────────▶ DRAINING ───────────────────────▶ ENDED
 *     │                            │    ▲                             ▲
 *     │ an event failed for good,  │    │ the member closes before    │ from any state: lost to another
 *     │ or is not in the log       ▼    │ the stop is stored          │ member, moved, or timed out
 *     └────────────────────────▶ STOPPING ────────────────────────────┘
 *                                          stop stored
 * </pre>
 *
 * <p>Events are handled only in ACTIVE and while the lease is valid (rule 3). Until ENDED, offsets of handled events are
 * committed (rule 4). A partition in STOPPING is not released unless the member leaves: storing the stop frees it. A
 * partition that is taken again is a new assignment with a higher epoch (rule 1); that happens only after the handler of
 * the former one has ended.
 *
 * <p>The thread that handles an assignment's pages is IDLE, WAITING for its turn, for the next attempt of an event or for
 * the end of a pause of the {@code CircuitBreaker}, or RUNNING. A release waits for it only in RUNNING, and while events
 * are in lanes (rule 5). Only in RUNNING it has a permit; {@code HandlerTurn} gives that up for every wait, which ends at
 * once when the partition is no longer ACTIVE.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.consume;

import org.jspecify.annotations.NullMarked;
