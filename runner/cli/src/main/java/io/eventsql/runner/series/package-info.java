/**
 * A run second by second.
 */
@NullMarked
package io.eventsql.runner.series;

import org.jspecify.annotations.NullMarked;
