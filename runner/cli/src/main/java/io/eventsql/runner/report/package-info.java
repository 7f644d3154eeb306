/**
 * What a run leaves: text for people, JSON for machines, and the summary of several runners.
 */
@NullMarked
package io.eventsql.runner.report;

import org.jspecify.annotations.NullMarked;
