package io.eventsql.spring.observation;

import io.eventsql.EventPosition;
import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * How a publish call is named and described; a bean of this type replaces the default, which follows OpenTelemetry's
 * conventions for messaging. Its timer is {@code eventsql.publish}, its span {@code send orders}.
 */
public interface EventSqlPublishConvention extends ObservationConvention<EventSqlPublishContext> {
    /** The value of {@code messaging.system}. */
    String SYSTEM = "eventsql";

    /** The default. */
    EventSqlPublishConvention DEFAULT = new EventSqlPublishConvention() {};

    @Override
    default boolean supportsContext(Observation.Context context) {
        return context instanceof EventSqlPublishContext;
    }

    @Override
    default String getName() {
        return "eventsql.publish";
    }

    @Override
    default String getContextualName(EventSqlPublishContext context) {
        return "send " + context.stream();
    }

    @Override
    default KeyValues getLowCardinalityKeyValues(EventSqlPublishContext context) {
        return KeyValues.of(
                "messaging.system",
                SYSTEM,
                "messaging.operation.type",
                "send",
                "messaging.destination.name",
                context.stream());
    }

    @Override
    default KeyValues getHighCardinalityKeyValues(EventSqlPublishContext context) {
        EventPosition position = context.position();
        if (position != null) {
            return KeyValues.of(
                    "messaging.destination.partition.id",
                    position.shard() + "/" + position.partition(),
                    "messaging.eventsql.offset",
                    Long.toString(position.offset()));
        }
        int events = context.events().size();
        return events == 1
                ? KeyValues.empty()
                : KeyValues.of("messaging.batch.message_count", Integer.toString(events));
    }
}
