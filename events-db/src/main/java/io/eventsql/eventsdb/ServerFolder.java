package io.eventsql.eventsdb;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/**
 * The folder of a server: {@code data} (PostgreSQL's), {@code server.log} and {@code secrets.properties}. The latter is
 * written last and marks the server as completely initialized.
 *
 * @param isTemporary whether it is removed with the server
 * @param isNew whether the server is not yet initialized
 */
record ServerFolder(Path path, boolean isTemporary, boolean isNew, String superuserPassword, String password) {

    static final String SUPERUSER = "postgres";

    /**
     * A single SCRAM iteration. Iterations make it expensive to guess passwords chosen by humans. These passwords are
     * random, and iterations would slow down each new connection.
     */
    static final String SCRAM_ITERATIONS = "scram_iterations=1";

    private static final String SECRETS = "secrets.properties";

    /**
     * Opens the folder of an earlier start, or creates a new one.
     *
     * @param given the path; {@code null} for a temporary folder
     * @throws IllegalStateException if an earlier start in it did not finish
     */
    static ServerFolder open(@Nullable Path given, PostgresBinaries binaries) throws IOException {
        Path path = given == null
                ? Files.createTempDirectory("eventsql-db-")
                : Files.createDirectories(given).toAbsolutePath();
        if (Files.exists(path.resolve(SECRETS))) {
            var secrets = new Properties();
            try (var in = Files.newBufferedReader(path.resolve(SECRETS))) {
                secrets.load(in);
            }
            String superuserPassword = secrets.getProperty(SUPERUSER, "");
            String password = secrets.getProperty(InitSql.USERNAME, "");
            if (superuserPassword.isEmpty() || password.isEmpty()) {
                throw incomplete(path);
            }
            return new ServerFolder(path, given == null, false, superuserPassword, password);
        }
        if (Files.exists(path.resolve("data"))) {
            throw incomplete(path);
        }
        String superuserPassword =
                given == null ? ClusterTemplate.of(binaries).superuserPassword() : Passwords.random();
        return new ServerFolder(path, given == null, true, superuserPassword, Passwords.random());
    }

    private static IllegalStateException incomplete(Path path) {
        return new IllegalStateException("an earlier start in " + path + " did not complete; remove the folder");
    }

    Path data() {
        return path.resolve("data");
    }

    Path log() {
        return path.resolve("server.log");
    }

    /** Creates a cluster that has only the superuser. A temporary one is copied, which takes a third of the time. */
    void createCluster(PostgresBinaries binaries) throws IOException {
        if (isTemporary) {
            ClusterTemplate.of(binaries).copyTo(data());
        } else {
            Initdb.run(binaries, data(), superuserPassword, true);
        }
    }

    /**
     * Writes the passwords after the role and the database are created. The file gets its name when it is complete: on a full
     * disk, say, there is none.
     */
    void writeSecrets() throws IOException {
        Path unfinished = path.resolve(SECRETS + ".tmp");
        Files.deleteIfExists(unfinished);
        Files.createFile(
                unfinished, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.writeString(
                unfinished, SUPERUSER + "=" + superuserPassword + "\n" + InitSql.USERNAME + "=" + password + "\n");
        Files.move(unfinished, path.resolve(SECRETS), StandardCopyOption.ATOMIC_MOVE);
    }

    void remove() {
        try {
            Folders.remove(path);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot remove " + path, e);
        }
    }

    /** Omits the passwords. */
    @Override
    public String toString() {
        return path.toString();
    }
}
