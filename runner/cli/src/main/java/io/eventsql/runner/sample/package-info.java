/**
 * What processes and databases use while a run goes on.
 */
@NullMarked
package io.eventsql.runner.sample;

import org.jspecify.annotations.NullMarked;
