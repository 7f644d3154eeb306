/**
 * What a system that keeps events must be able to do to be measured by the runner. To add one, implement
 * {@link io.eventsql.runner.driver.DriverProvider} and {@link io.eventsql.runner.driver.Driver}, name the provider in
 * {@code META-INF/services/io.eventsql.runner.driver.DriverProvider}, and put the jar on the runner's class path.
 */
@NullMarked
package io.eventsql.runner.driver;

import org.jspecify.annotations.NullMarked;
