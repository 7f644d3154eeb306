package io.eventsql.runner.spec;

import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Lays one object over another: fields of objects one by one, everything else, lists too, as a whole. */
final class Merge {
    private Merge() {}

    /** A new object; neither of both is changed. */
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
