/** Tests of Spring Boot applications with EventSQL: a database for each test class, and waiting for listeners. */
@NullMarked
package io.eventsql.spring.test;

import org.jspecify.annotations.NullMarked;
