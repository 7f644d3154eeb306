package io.eventsql.eventsdb;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Comparator;
import java.util.Properties;
import java.util.stream.Stream;
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
            return new ServerFolder(
                    path,
                    given == null,
                    false,
                    secrets.getProperty(SUPERUSER, ""),
                    secrets.getProperty(InitSql.USERNAME, ""));
        }
        if (Files.exists(path.resolve("data"))) {
            throw new IllegalStateException("an earlier start in " + path + " did not complete; remove the folder");
        }
        String superuserPassword =
                given == null ? ClusterTemplate.of(binaries).superuserPassword() : Passwords.random();
        return new ServerFolder(path, given == null, true, superuserPassword, Passwords.random());
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

    /** Writes the passwords after the role and the database are created. */
    void writeSecrets() throws IOException {
        Path file = path.resolve(SECRETS);
        Files.deleteIfExists(file);
        Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.writeString(file, SUPERUSER + "=" + superuserPassword + "\n" + InitSql.USERNAME + "=" + password + "\n");
    }

    void remove() {
        try (Stream<Path> paths = Files.walk(path)) {
            for (Path each : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
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
