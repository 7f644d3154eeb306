/** Measurements recorded during a phase of load. */
@NullMarked
package io.eventsql.runner.measure;

import org.jspecify.annotations.NullMarked;
