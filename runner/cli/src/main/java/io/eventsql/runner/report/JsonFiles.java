package io.eventsql.runner.report;

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

/** Reads and writes a run's JSON files: names in snake case, in the order of the record's fields. */
public final class JsonFiles {
    private static final JsonMapper JSON = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(SerializationFeature.INDENT_OUTPUT)
            .build();

    private JsonFiles() {}

    /** Writes a file, whole or not at all; folders are made as needed. */
    public static void write(Path file, Object value) {
        write(file, text(value) + "\n");
    }

    /** The value as it would stand in a file. */
    public static String text(Object value) {
        return JSON.writeValueAsString(value);
    }

    /** Writes a text file, whole or not at all; folders are made as needed. */
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
     * The value that was written to a file.
     *
     * @throws IOException if the file cannot be read or holds something else
     */
    public static <T> T read(Path file, Class<T> type) throws IOException {
        try {
            return JSON.readValue(Files.readString(file), type);
        } catch (JacksonException e) {
            throw new IOException(file + " is not understood: " + e.getOriginalMessage(), e);
        }
    }

    /** The value as it would stand in a file. */
    public static JsonNode treeOf(Object value) {
        return JSON.valueToTree(value);
    }

    /** The value that stands in a tree. */
    public static <T> T valueOf(JsonNode tree, Class<T> type) {
        return JSON.treeToValue(tree, type);
    }

    /**
     * What a file holds, whatever it is.
     *
     * @throws IOException if the file cannot be read or is no JSON
     */
    public static JsonNode tree(Path file) throws IOException {
        return read(file, JsonNode.class);
    }
}
