package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.NumberSet;
import org.springframework.boot.jackson.JacksonComponent;
import tools.jackson.core.JsonGenerator;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueSerializer;

/** Serializes a set of numbers losslessly in its text form. */
@JacksonComponent
final class NumberSetSerializer extends ValueSerializer<NumberSet> {

    @Override
    public void serialize(NumberSet numbers, JsonGenerator json, SerializationContext context) {
        json.writeString(numbers.encode());
    }
}
