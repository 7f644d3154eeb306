/** Crash and competition tests: cut connections, killed processes, frozen databases, concurrent processes. */
@NullMarked
package io.eventsql.fault;

import org.jspecify.annotations.NullMarked;
