/** Measurements recorded during a phase of load, in total and for each second. */
@NullMarked
package io.eventsql.runner.measure;

import org.jspecify.annotations.NullMarked;
