package io.eventsql.spring;

import io.eventsql.EventPosition;
import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * Names and attributes of an observed publish call. A bean of this type replaces the default, which follows
 * OpenTelemetry's conventions for messaging: the timer {@code eventsql.publish}, the span {@code send orders}.
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
