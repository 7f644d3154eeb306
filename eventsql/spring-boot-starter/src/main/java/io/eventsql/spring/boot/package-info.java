/** Auto-configuration of EventSQL for Spring Boot. */
@NullMarked
package io.eventsql.spring.boot;

import org.jspecify.annotations.NullMarked;
