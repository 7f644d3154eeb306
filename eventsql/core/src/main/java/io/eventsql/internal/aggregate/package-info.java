/**
 * Continuous aggregates: a transactional consumer adds the events of each page to tables of the application.
 *
 * <pre>
 *               start                    rebuild                        caught up
 * no tables ──────────▶ generation g ──────────────▶ g serves, g+1 ──────────────▶ g+1 serves, rows of g are deleted
 *                                                     is filled
 * </pre>
 *
 * Each generation has a consumer of its own, which begins with the first event of the log, and rows of its own. The state is a row on
 * each shard; every member compares it with what it runs, so a rebuild continues whatever process ends. A shard serves the new generation
 * once its consumer has handled what that of the old one has.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.aggregate;

import org.jspecify.annotations.NullMarked;
