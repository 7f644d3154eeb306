/** Time series of a run with one value per second. */
@NullMarked
package io.eventsql.runner.series;

import org.jspecify.annotations.NullMarked;
