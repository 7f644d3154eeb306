/**
 * Repeated trials of the same load, each on an empty stream, to measure durations and their variance. Works with every
 * driver.
 */
@NullMarked
package io.eventsql.runner.trials;

import org.jspecify.annotations.NullMarked;
