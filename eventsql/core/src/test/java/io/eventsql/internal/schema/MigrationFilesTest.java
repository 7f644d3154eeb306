package io.eventsql.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Rules for SQL files that no test of a database would find broken at once. */
class MigrationFilesTest {
    private static final Path MAIN = Path.of("src/main");
    private static final Path MIGRATION = MAIN.resolve("resources/io/eventsql/db/migration");

    /** The name of a setting cannot be quoted, and the schema's name is replaced by a quoted one. */
    private static final Pattern SETTING_OF_THE_SCHEMA =
            Pattern.compile("(?:set_config|current_setting)\\('+eventsql\\.");

    /** Version 45 changes their functions. */
    private static final Set<String> RELEASED =
            Set.of("V21__key_versions.sql", "V36__key_readers.sql", "V38__steady_maintenance.sql");

    private static final int FIRST_THAT_GIVES_TO_THE_OWNER = 44;

    @Test
    void settings_inSqlAndJava_areNotNamedAfterTheSchema() throws IOException {
        assertThat(files(MAIN))
                .filteredOn(file -> !RELEASED.contains(file.getFileName().toString()))
                .filteredOn(file -> SETTING_OF_THE_SCHEMA.matcher(read(file)).find())
                .isEmpty();
    }

    /** Else a function belongs to the role that applied the file, and functions of the owner may not execute it. */
    @Test
    void files_giveToTheOwnerWhatTheyCreate() throws IOException {
        assertThat(files(MIGRATION))
                .filteredOn(file -> version(file) >= FIRST_THAT_GIVES_TO_THE_OWNER)
                .isNotEmpty()
                .allSatisfy(file -> assertThat(read(file)).contains("PERFORM eventsql.give_to_owner_v1();"));
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(Files::isRegularFile).toList();
        }
    }

    private static int version(Path file) {
        String name = file.getFileName().toString();
        return Integer.parseInt(name.substring(1, name.indexOf("__")));
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
