/** The Actuator endpoint and the health indicator. */
@NullMarked
package io.eventsql.spring.internal.actuate;

import org.jspecify.annotations.NullMarked;
