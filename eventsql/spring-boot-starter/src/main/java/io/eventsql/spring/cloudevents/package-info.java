/** CloudEvents in binary mode: the attributes are headers {@code ce_…}, the data is the event's value. */
@NullMarked
package io.eventsql.spring.cloudevents;

import org.jspecify.annotations.NullMarked;
