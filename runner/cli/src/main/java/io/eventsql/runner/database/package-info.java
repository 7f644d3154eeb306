/**
 * The databases a run works on.
 */
@NullMarked
package io.eventsql.runner.database;

import org.jspecify.annotations.NullMarked;
