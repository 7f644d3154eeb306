package io.eventsql.runner.spec;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * A value from the command line, such as {@code consumers=5} or {@code phases.1.rate=2000}. List indexes start at 0.
 *
 * @param path the names and list indexes that lead to the field
 * @param value the YAML value, as in a workload file
 */
public record FieldOverride(List<String> path, String value) {

    /**
     * Parses an override.
     *
     * @throws InvalidWorkloadException if the name or the value is missing
     */
    public static FieldOverride of(String text) {
        int equals = text.indexOf('=');
        List<String> path = equals < 0
                ? List.of()
                : Arrays.asList(text.substring(0, equals).strip().split("\\.", -1));
        if (path.isEmpty() || path.stream().anyMatch(String::isBlank)) {
            throw new InvalidWorkloadException(
                    "--set", "must be like consumers=5 or phases.1.rate=2000, but is '" + text + "'");
        }
        return new FieldOverride(path, text.substring(equals + 1).strip());
    }

    /** Sets the value in the given object. */
    void applyTo(ObjectNode run) {
        JsonNode at = run;
        for (String step : path.subList(0, path.size() - 1)) {
            JsonNode next = child(at, step);
            if (next == null && at instanceof ObjectNode object) {
                next = object.putObject(step);
            }
            if (next == null || next.isValueNode()) {
                throw invalid("'" + step + "' is not an object");
            }
            at = next;
        }
        String last = path.getLast();
        if (at instanceof ArrayNode list) {
            list.set(index(list, last), parseValue());
        } else {
            ((ObjectNode) at).set(last, parseValue());
        }
    }

    private @Nullable JsonNode child(JsonNode at, String step) {
        return at instanceof ArrayNode list ? list.get(index(list, step)) : at.get(step);
    }

    private int index(ArrayNode list, String step) {
        if (!step.matches("[0-9]{1,4}") || Integer.parseInt(step) >= list.size()) {
            throw invalid("the list has indexes 0 to " + (list.size() - 1) + ", but not '" + step + "'");
        }
        return Integer.parseInt(step);
    }

    private JsonNode parseValue() {
        try {
            return WorkloadFile.YAML.readTree(value);
        } catch (JacksonException e) {
            throw invalid("invalid value: " + e.getOriginalMessage());
        }
    }

    private InvalidWorkloadException invalid(String problem) {
        return new InvalidWorkloadException("--set " + String.join(".", path), problem);
    }
}
