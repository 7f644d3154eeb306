/** The consumer app of benchmarks: what it is made of and how it is set up. */
@NullMarked
package io.eventsql.app;

import org.jspecify.annotations.NullMarked;
