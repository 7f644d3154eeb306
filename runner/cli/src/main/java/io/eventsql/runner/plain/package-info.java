/** What the machine and plain client programs reach, measured after a run. */
@NullMarked
package io.eventsql.runner.plain;

import org.jspecify.annotations.NullMarked;
