/** Warms the JVMs up until they hardly compile. */
@NullMarked
package io.eventsql.runner.warmup;

import org.jspecify.annotations.NullMarked;
