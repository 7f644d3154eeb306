/**
 * What the consumer has seen: its positions in the databases, and the app's own counts over HTTP.
 */
@NullMarked
package io.eventsql.runner.consumption;

import org.jspecify.annotations.NullMarked;
