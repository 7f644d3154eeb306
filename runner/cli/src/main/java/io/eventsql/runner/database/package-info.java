/** The databases of a run. */
@NullMarked
package io.eventsql.runner.database;

import org.jspecify.annotations.NullMarked;
