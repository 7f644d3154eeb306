/**
 * When and by whom it is published: schedules and callers. Knows neither EventSQL nor what is measured.
 */
@NullMarked
package io.eventsql.runner.load;

import org.jspecify.annotations.NullMarked;
