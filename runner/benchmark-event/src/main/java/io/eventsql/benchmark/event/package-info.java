/**
 * The benchmark event, published by the runner and counted by the consumer app. Its value is valid JSON that starts
 * with a fixed-width marker, so that decoding requires no JSON parser.
 */
@NullMarked
package io.eventsql.benchmark.event;

import org.jspecify.annotations.NullMarked;
