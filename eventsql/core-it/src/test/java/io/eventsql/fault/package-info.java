/** Tests of what must survive: cut connections, crashes, frozen databases, competing processes. */
@NullMarked
package io.eventsql.fault;

import org.jspecify.annotations.NullMarked;
