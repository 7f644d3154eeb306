/**
 * Auto-configuration of EventSQL for Spring Boot. Only the names of the auto-configuration classes are public API, for
 * {@code spring.autoconfigure.exclude}, {@code @ImportAutoConfiguration} and the ordering of other auto-configurations;
 * everything else here is package-private.
 */
@NullMarked
package io.eventsql.spring.boot;

import org.jspecify.annotations.NullMarked;
