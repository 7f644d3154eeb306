package io.eventsql.runner.spec;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * The fields of one object of a workload file, read by name. Rejects invalid values with a message that names the file,
 * the field and the limit. {@link #rejectUnknown()} rejects fields that were not read. For use by one thread.
 */
final class WorkloadFields {
    private final String where;
    private final String path;
    private final ObjectNode node;
    private final Set<String> read = new HashSet<>();

    /**
     * @param where the file and the run
     * @param path the path of this object in the file, with a trailing dot; empty at the top level
     */
    WorkloadFields(String where, String path, ObjectNode node) {
        this.where = where;
        this.path = path;
        this.node = node;
    }

    /** Returns whether the field is present. */
    boolean has(String name) {
        JsonNode value = node.get(name);
        return value != null && !value.isNull();
    }

    String text(String name, String otherwise) {
        JsonNode value = value(name);
        if (value == null) {
            return otherwise;
        }
        require(value.isString(), name, "must be a string, but is " + value);
        return value.stringValue();
    }

    String oneOf(String name, String otherwise, String... allowed) {
        String value = text(name, otherwise);
        require(
                Arrays.asList(allowed).contains(value),
                name,
                "must be one of " + String.join(", ", allowed) + ", but is '" + value + "'");
        return value;
    }

    <E extends Enum<E>> E oneOf(String name, @Nullable E otherwise, Class<E> type) {
        String[] allowed = Arrays.stream(type.getEnumConstants())
                .map(constant -> constant.name().toLowerCase(Locale.ROOT))
                .toArray(String[]::new);
        if (otherwise == null && !has(name)) {
            throw invalid(name, "is missing: one of " + String.join(", ", allowed));
        }
        String value = oneOf(name, otherwise == null ? "" : otherwise.name().toLowerCase(Locale.ROOT), allowed);
        return Enum.valueOf(type, value.toUpperCase(Locale.ROOT));
    }

    boolean flag(String name, boolean otherwise) {
        JsonNode value = value(name);
        if (value == null) {
            return otherwise;
        }
        require(value.isBoolean(), name, "must be true or false, but is " + value);
        return value.booleanValue();
    }

    /** Returns a required integer. */
    long integer(String name, long min, long max) {
        require(has(name), name, "is missing: an integer between " + min + " and " + max);
        return integer(name, min, min, max);
    }

    long integer(String name, long otherwise, long min, long max) {
        JsonNode value = value(name);
        return value == null ? otherwise : integer(name, value, min, max);
    }

    private long integer(String name, JsonNode value, long min, long max) {
        boolean inRange = value.isIntegralNumber()
                && value.canConvertToLong()
                && value.longValue() >= min
                && value.longValue() <= max;
        require(inRange, name, "must be an integer between " + min + " and " + max + ", but is " + value);
        return value.longValue();
    }

    double decimal(String name, double otherwise, double min, double max) {
        JsonNode value = value(name);
        if (value == null) {
            return otherwise;
        }
        boolean inRange = value.isNumber() && value.doubleValue() >= min && value.doubleValue() <= max;
        require(inRange, name, "must be a number between " + min + " and " + max + ", but is " + value);
        return value.doubleValue();
    }

    List<Integer> integers(String name, List<Integer> otherwise, int min, int max) {
        JsonNode value = value(name);
        if (value == null) {
            return otherwise;
        }
        require(value.isArray() && !value.isEmpty(), name, "must be a list of numbers, but is " + value);
        List<Integer> numbers = new ArrayList<>();
        for (JsonNode item : value) {
            numbers.add((int) integer(name + "." + numbers.size(), item, min, max));
        }
        return List.copyOf(numbers);
    }

    /** Returns a required list of at least one of the allowed strings. */
    List<String> labels(String name, List<String> allowed) {
        JsonNode value = value(name);
        require(
                value != null
                        && value.isArray()
                        && !value.isEmpty()
                        && value.valueStream()
                                .allMatch(item -> item.isString() && allowed.contains(item.stringValue())),
                name,
                "must be a list of " + String.join(", ", allowed) + ", but is " + value);
        List<String> labels = new ArrayList<>();
        Objects.requireNonNull(value).forEach(item -> labels.add(item.stringValue()));
        return List.copyOf(labels);
    }

    /** Returns strings by name. Numbers and booleans are converted to strings. */
    Map<String, String> texts(String name) {
        JsonNode value = value(name);
        if (value == null) {
            return Map.of();
        }
        require(value.isObject(), name, "must be an object, but is " + value);
        Map<String, String> texts = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : value.properties()) {
            require(
                    entry.getValue().isValueNode() && !entry.getValue().isNull(),
                    name + "." + entry.getKey(),
                    "must be a string, number or boolean, but is " + entry.getValue());
            texts.put(entry.getKey(), entry.getValue().asString());
        }
        return texts;
    }

    /** Converts the value with a function that may throw {@link IllegalArgumentException}; {@code null} if absent. */
    <T> @Nullable T convert(String name, Function<Object, T> maker) {
        JsonNode value = value(name);
        if (value == null) {
            return null;
        }
        try {
            return maker.apply(value.isValueNode() ? value.asString() : value);
        } catch (IllegalArgumentException e) {
            throw invalid(name, e.getMessage());
        }
    }

    /** Returns the fields of a nested object; an empty object if absent. */
    WorkloadFields object(String name) {
        JsonNode value = value(name);
        if (value == null) {
            return new WorkloadFields(where, path + name + ".", JsonNodeFactory.instance.objectNode());
        }
        if (value instanceof ObjectNode object) {
            return new WorkloadFields(where, path + name + ".", object);
        }
        throw invalid(name, "must be an object, but is " + value);
    }

    /** Returns the fields of each object of a list; an empty list if absent. */
    List<WorkloadFields> objects(String name) {
        JsonNode value = value(name);
        List<WorkloadFields> objects = new ArrayList<>();
        if (value == null) {
            return objects;
        }
        require(value.isArray(), name, "must be a list, but is " + value);
        for (JsonNode item : value) {
            String itemName = name + "." + objects.size();
            require(item.isObject(), itemName, "must be an object, but is " + item);
            objects.add(new WorkloadFields(where, path + itemName + ".", (ObjectNode) item));
        }
        return objects;
    }

    /** Rejects fields that were not read. */
    void rejectUnknown() {
        for (String name : node.propertyNames()) {
            require(read.contains(name), name, "is unknown here; known fields: " + String.join(", ", knownFields()));
        }
    }

    private List<String> knownFields() {
        return read.stream().sorted().toList();
    }

    void require(boolean condition, String name, @Nullable String problem) {
        if (!condition) {
            throw invalid(name, problem);
        }
    }

    InvalidWorkloadException invalid(String name, @Nullable String problem) {
        return new InvalidWorkloadException(where, path + name + " " + problem);
    }

    private @Nullable JsonNode value(String name) {
        read.add(name);
        return has(name) ? node.get(name) : null;
    }
}
