/**
 * The benchmark runner's command line: options, and the order of a run's steps. Not a library: nothing here is promised
 * to stay.
 */
@NullMarked
package io.eventsql.runner;

import org.jspecify.annotations.NullMarked;
