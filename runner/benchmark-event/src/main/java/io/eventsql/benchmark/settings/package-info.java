/** Environment settings shared by the runner and the app. */
@NullMarked
package io.eventsql.benchmark.settings;

import org.jspecify.annotations.NullMarked;
