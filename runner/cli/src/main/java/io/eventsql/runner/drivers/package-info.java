/**
 * The systems that can be measured.
 */
@NullMarked
package io.eventsql.runner.drivers;

import org.jspecify.annotations.NullMarked;
