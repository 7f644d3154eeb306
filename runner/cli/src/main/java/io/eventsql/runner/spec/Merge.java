package io.eventsql.runner.spec;

import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Merges two objects. Nested objects are merged field by field, other values and lists are replaced. */
final class Merge {
    private Merge() {}

    /** Returns a new merged object. The arguments remain unchanged. */
    static ObjectNode of(ObjectNode below, ObjectNode above) {
        ObjectNode merged = below.deepCopy();
        for (Map.Entry<String, JsonNode> entry : above.properties()) {
            JsonNode former = merged.get(entry.getKey());
            if (former instanceof ObjectNode formerObject && entry.getValue() instanceof ObjectNode object) {
                merged.set(entry.getKey(), of(formerObject, object));
            } else {
                merged.set(entry.getKey(), entry.getValue().deepCopy());
            }
        }
        return merged;
    }
}
