/**
 * The same load again and again, each time from an empty stream: how long it takes and how that varies. Works with every
 * driver.
 */
@NullMarked
package io.eventsql.runner.trials;

import org.jspecify.annotations.NullMarked;
