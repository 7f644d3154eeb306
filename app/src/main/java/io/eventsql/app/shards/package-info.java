/** The app's databases: their connection pools, and whether they answer. */
@NullMarked
package io.eventsql.app.shards;

import org.jspecify.annotations.NullMarked;
