/** The apps of a run: positions in the databases, their counts over HTTP, a common start, and warm JVMs. */
@NullMarked
package io.eventsql.runner.consumption;

import org.jspecify.annotations.NullMarked;
