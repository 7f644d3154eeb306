/** The consumer app of benchmarks: its components and configuration. */
@NullMarked
package io.eventsql.app;

import org.jspecify.annotations.NullMarked;
