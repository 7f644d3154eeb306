/**
 * What is recorded while it is published.
 */
@NullMarked
package io.eventsql.runner.measure;

import org.jspecify.annotations.NullMarked;
