package io.eventsql.runner.spec;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/** Reads workload files. */
public final class WorkloadFile {
    /** Rejects duplicate names and content after the first document. */
    static final YAMLMapper YAML = YAMLMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private static final String ENDING = ".yaml";

    private WorkloadFile() {}

    /**
     * Returns the workload files of a folder, sorted by name.
     *
     * @throws IOException if the folder cannot be read
     */
    public static List<Path> list(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.getFileName().toString().endsWith(ENDING))
                    .sorted()
                    .toList();
        }
    }

    /**
     * Reads a file.
     *
     * @param overrides the overrides to apply to every run, in order
     * @throws IOException if the file cannot be read
     * @throws InvalidWorkloadException if the file is invalid
     */
    public static Workload read(Path file, List<FieldOverride> overrides) throws IOException {
        String fileName = file.getFileName().toString();
        return read(fileName, Files.readString(file), overrides);
    }

    static Workload read(String fileName, String text, List<FieldOverride> overrides) {
        String name = fileName.endsWith(ENDING) ? fileName.substring(0, fileName.length() - ENDING.length()) : fileName;
        ObjectNode top = parse(fileName, text);
        ObjectNode base = top.deepCopy();
        base.remove("runs");
        List<ObjectNode> runs = runs(fileName, top, name);
        List<RunSpec> specs = new ArrayList<>();
        Set<String> names = new HashSet<>();
        WorkloadKind kind = new WorkloadFields(fileName, "", top).oneOf("kind", null, WorkloadKind.class);
        for (ObjectNode run : runs) {
            ObjectNode merged = merge(base, run);
            overrides.forEach(override -> override.applyTo(merged));
            RunSpec spec = spec(fileName, merged, kind);
            if (!names.add(spec.name())) {
                throw new InvalidWorkloadException(fileName, "the run name " + spec.name() + " is not unique");
            }
            specs.add(spec);
        }
        return new Workload(name, kind, description(fileName, top), List.copyOf(specs));
    }

    /**
     * Returns a new merged object: nested objects are merged field by field, other values and lists are replaced. The
     * arguments remain unchanged.
     */
    private static ObjectNode merge(ObjectNode below, ObjectNode above) {
        ObjectNode merged = below.deepCopy();
        for (Map.Entry<String, JsonNode> entry : above.properties()) {
            JsonNode former = merged.get(entry.getKey());
            if (former instanceof ObjectNode formerObject && entry.getValue() instanceof ObjectNode object) {
                merged.set(entry.getKey(), merge(formerObject, object));
            } else {
                merged.set(entry.getKey(), entry.getValue().deepCopy());
            }
        }
        return merged;
    }

    private static ObjectNode parse(String fileName, String text) {
        try {
            if (YAML.readTree(text) instanceof ObjectNode object) {
                return object;
            }
        } catch (JacksonException e) {
            throw new InvalidWorkloadException(
                    fileName, "invalid YAML in line " + e.getLocation().getLineNr() + ": " + e.getOriginalMessage());
        }
        throw new InvalidWorkloadException(fileName, "must contain an object");
    }

    private static List<ObjectNode> runs(String fileName, ObjectNode top, String name) {
        JsonNode runs = top.get("runs");
        if (runs == null) {
            return List.of(JsonNodeFactory.instance.objectNode().put("name", name));
        }
        if (!runs.isArray() || runs.isEmpty()) {
            throw new InvalidWorkloadException(fileName, "runs must be a list of at least one run, but is " + runs);
        }
        List<ObjectNode> objects = new ArrayList<>();
        for (JsonNode run : runs) {
            if (!(run instanceof ObjectNode object) || object.get("kind") != null) {
                throw new InvalidWorkloadException(
                        fileName, "runs." + objects.size() + " must be an object without kind, but is " + run);
            }
            objects.add(object);
        }
        return objects;
    }

    private static RunSpec spec(String fileName, ObjectNode merged, WorkloadKind kind) {
        String name = new WorkloadFields(fileName, "", merged).text("name", "");
        if (!name.matches("[a-z0-9][a-z0-9._-]{0,59}")) {
            throw new InvalidWorkloadException(
                    fileName,
                    "the name of a run must be 1 to 60 lower-case letters, digits, dots, hyphens and underscores,"
                            + " but is '" + name + "'");
        }
        WorkloadFields fields = new WorkloadFields(fileName + ", run " + name, "", merged);
        fields.text("name", "");
        fields.text("kind", "");
        fields.text("description", "");
        return new RunReader(fields, name, kind).read();
    }

    private static String description(String fileName, ObjectNode top) {
        String description = new WorkloadFields(fileName, "", top).text("description", "");
        if (description.isBlank() || description.contains("\n")) {
            throw new InvalidWorkloadException(fileName, "description must be one line");
        }
        return description;
    }
}
