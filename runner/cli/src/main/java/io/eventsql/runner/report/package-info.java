/** The output of a run: text, JSON, and the summary of several runners. */
@NullMarked
package io.eventsql.runner.report;

import org.jspecify.annotations.NullMarked;
