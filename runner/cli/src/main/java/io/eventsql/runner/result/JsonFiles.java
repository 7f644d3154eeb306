package io.eventsql.runner.result;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Reads and writes JSON files with snake-case names in the order of the record components. */
public final class JsonFiles {
    private static final JsonMapper JSON = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(SerializationFeature.INDENT_OUTPUT)
            .build();

    private JsonFiles() {}

    /** Writes a JSON file atomically. Creates folders as needed. */
    public static void write(Path file, Object value) {
        write(file, toJson(value) + "\n");
    }

    /** Returns the JSON text of a value. */
    public static String toJson(Object value) {
        return JSON.writeValueAsString(value);
    }

    /** Writes a text file atomically. Creates folders as needed. */
    public static void write(Path file, String text) {
        try {
            Path folder = file.toAbsolutePath().normalize().getParent();
            if (folder != null) {
                Files.createDirectories(folder);
            }
            Path unfinished = file.resolveSibling(file.getFileName() + ".tmp");
            Files.writeString(unfinished, text);
            Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + file, e);
        }
    }

    /**
     * Reads a value from a file.
     *
     * @throws IOException if the file cannot be read or contains something else
     */
    public static <T> T read(Path file, Class<T> type) throws IOException {
        try {
            return JSON.readValue(Files.readString(file), type);
        } catch (JacksonException e) {
            throw new IOException("Invalid file " + file + ": " + e.getOriginalMessage(), e);
        }
    }

    /** Returns the JSON tree of a value. */
    public static JsonNode toTree(Object value) {
        return JSON.valueToTree(value);
    }

    /** Converts a JSON tree to a value. */
    public static <T> T fromTree(JsonNode tree, Class<T> type) {
        return JSON.treeToValue(tree, type);
    }

    /**
     * Reads a file as a JSON tree.
     *
     * @throws IOException if the file cannot be read or is not JSON
     */
    public static JsonNode readTree(Path file) throws IOException {
        return read(file, JsonNode.class);
    }
}
