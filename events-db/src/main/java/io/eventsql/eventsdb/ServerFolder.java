package io.eventsql.eventsdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
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
    static ServerFolder open(@Nullable Path given) throws IOException {
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
        return new ServerFolder(path, given == null, true, Passwords.random(), Passwords.random());
    }

    Path data() {
        return path.resolve("data");
    }

    Path log() {
        return path.resolve("server.log");
    }

    /** Runs initdb. Creates only the superuser. */
    void createCluster(PostgresBinaries binaries) throws IOException {
        Path passwordFile = Files.createTempFile(path, "password", "");
        try {
            Files.writeString(passwordFile, superuserPassword);
            var arguments = new ArrayList<>(List.of(
                    "--pgdata=" + data(),
                    "--username=" + SUPERUSER,
                    "--pwfile=" + passwordFile,
                    "--auth=scram-sha-256",
                    "--set=" + SCRAM_ITERATIONS,
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-instructions"));
            if (isTemporary) {
                // The empty cluster need not survive a power failure, unlike later writes of the server.
                arguments.add("--no-sync");
            }
            Process initdb = binaries.process("initdb", arguments)
                    .redirectErrorStream(true)
                    .start();
            String output;
            try (var in = initdb.getInputStream()) {
                output = new String(in.readAllBytes(), UTF_8);
            }
            int exitCode = initdb.waitFor();
            if (exitCode != 0) {
                throw new IllegalStateException("initdb failed with exit code " + exitCode + ":\n" + output
                        + "\n(PostgreSQL refuses to run as root; root requires `unshare --user`)");
            }
        } catch (InterruptedException e) {
            throw Postmaster.interrupted(e);
        } finally {
            Files.delete(passwordFile);
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
