/** The consumer's view of a run: positions in the databases, and the app's counts over HTTP. */
@NullMarked
package io.eventsql.runner.consumption;

import org.jspecify.annotations.NullMarked;
