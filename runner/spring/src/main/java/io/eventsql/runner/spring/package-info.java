/** Transactions of Spring, kept out of the runner's core. */
@NullMarked
package io.eventsql.runner.spring;

import org.jspecify.annotations.NullMarked;
