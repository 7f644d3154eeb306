package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.NumberSet;
import org.springframework.boot.jackson.JacksonComponent;
import tools.jackson.core.JsonGenerator;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueSerializer;

/** Writes a set of numbers as its text, from which it can be read back whole. */
@JacksonComponent
final class NumberSetSerializer extends ValueSerializer<NumberSet> {

    @Override
    public void serialize(NumberSet numbers, JsonGenerator json, SerializationContext context) {
        json.writeString(numbers.encode());
    }
}
