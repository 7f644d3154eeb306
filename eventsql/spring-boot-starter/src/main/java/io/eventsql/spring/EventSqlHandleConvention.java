package io.eventsql.spring;

import io.eventsql.StoredEvent;
import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * Names and attributes of an observed call of a handler. A bean of this type replaces the default, which follows
 * OpenTelemetry's conventions for messaging: the timer {@code eventsql.process}, the span {@code process orders}.
 */
public interface EventSqlHandleConvention extends ObservationConvention<EventSqlHandleContext> {
    /** The default. */
    EventSqlHandleConvention DEFAULT = new EventSqlHandleConvention() {};

    @Override
    default boolean supportsContext(Observation.Context context) {
        return context instanceof EventSqlHandleContext;
    }

    @Override
    default String getName() {
        return "eventsql.process";
    }

    @Override
    default String getContextualName(EventSqlHandleContext context) {
        return "process " + context.stream();
    }

    @Override
    default KeyValues getLowCardinalityKeyValues(EventSqlHandleContext context) {
        return KeyValues.of(
                "messaging.system",
                EventSqlPublishConvention.SYSTEM,
                "messaging.operation.type",
                "process",
                "messaging.destination.name",
                context.stream(),
                "messaging.consumer.group.name",
                context.consumer());
    }

    @Override
    default KeyValues getHighCardinalityKeyValues(EventSqlHandleContext context) {
        StoredEvent first = context.events().getFirst();
        KeyValues values = KeyValues.of(
                "messaging.destination.partition.id",
                first.shard() + "/" + first.partition(),
                "messaging.eventsql.offset",
                Long.toString(first.offset()));
        return context.isBatch()
                ? values.and(
                        "messaging.batch.message_count",
                        Integer.toString(context.events().size()))
                : values;
    }
}
