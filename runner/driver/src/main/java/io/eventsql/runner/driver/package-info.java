/**
 * The interface between the runner and the measured systems. To add a system, implement {@link
 * io.eventsql.runner.driver.DriverProvider} and {@link io.eventsql.runner.driver.Driver}, list the provider in {@code
 * META-INF/services/io.eventsql.runner.driver.DriverProvider}, and put the jar on the runner's class path.
 */
@NullMarked
package io.eventsql.runner.driver;

import org.jspecify.annotations.NullMarked;
