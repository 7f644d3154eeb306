/**
 * The event of a benchmark: published by the runner, counted by the consumer app. A value begins with a marker of fixed
 * width, so that reading it back costs no JSON parser, and is valid JSON all the same.
 */
@NullMarked
package io.eventsql.benchmark.event;

import org.jspecify.annotations.NullMarked;
