package io.eventsql.eventsdb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The cache, in a home folder of its own. */
class PostgresBinariesTest {
    private static final String HOME = "user.home";
    private final String formerHome = System.getProperty(HOME);

    @TempDir
    private Path home;

    @BeforeEach
    void useHome() {
        System.setProperty(HOME, home.toString());
    }

    @AfterEach
    void restoreHome() {
        System.setProperty(HOME, formerHome);
    }

    @Test
    void cached_afterAFailure_leavesNothingOfIt() throws IOException {
        assertThatThrownBy(() -> PostgresBinaries.cached("programs", folder -> {
                    Files.writeString(folder.resolve("part"), "p");
                    throw new IOException("No space left on device");
                }))
                .isInstanceOf(IOException.class);

        Path filled = PostgresBinaries.cached("programs", folder -> Files.writeString(folder.resolve("whole"), "w"));

        assertThat(filled).isDirectoryContaining("glob:**/whole");
        assertThat(home.resolve(".cache/eventsql"))
                .isDirectoryContaining("glob:**/programs")
                .isDirectoryNotContaining("glob:**/unpacking-*");
    }
}
