/**
 * What a run of a workload leaves: its folder, read and written.
 */
@NullMarked
package io.eventsql.runner.result;

import org.jspecify.annotations.NullMarked;
