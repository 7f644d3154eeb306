/**
 * The benchmark runner's command line: options, and the order of a run's steps. This is not a library, and its API may
 * change at any time.
 */
@NullMarked
package io.eventsql.runner;

import org.jspecify.annotations.NullMarked;
