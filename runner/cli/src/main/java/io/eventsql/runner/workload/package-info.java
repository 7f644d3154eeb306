/** The published events and their keys. */
@NullMarked
package io.eventsql.runner.workload;

import org.jspecify.annotations.NullMarked;
