/** What applications write against: annotated listeners, and the words they share with the rest of the starter. */
@NullMarked
package io.eventsql.spring;

import org.jspecify.annotations.NullMarked;
