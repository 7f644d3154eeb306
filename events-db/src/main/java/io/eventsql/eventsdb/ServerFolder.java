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
 * A server's folder: {@code data} (PostgreSQL's), {@code server.log} and {@code secrets.properties}, which is written
 * last and so says that the server was made completely.
 *
 * @param isTemporary whether it goes with the server
 * @param isNew whether the server in it is yet to be made
 */
record ServerFolder(Path path, boolean isTemporary, boolean isNew, String superuserPassword, String password) {

    static final String SUPERUSER = "postgres";

    /**
     * Repeating the hash makes it expensive to guess what people chose. These passwords are random, and each new
     * connection would pay for it.
     */
    static final String SCRAM_ITERATIONS = "scram_iterations=1";

    private static final String SECRETS = "secrets.properties";

    /**
     * The folder of an earlier start, or of a first one.
     *
     * @param given where it lies; {@code null} makes a temporary one
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
            throw new IllegalStateException("an earlier start in " + path + " did not finish: remove the folder");
        }
        return new ServerFolder(path, given == null, true, Passwords.random(), Passwords.random());
    }

    Path data() {
        return path.resolve("data");
    }

    Path log() {
        return path.resolve("server.log");
    }

    /** Makes PostgreSQL's data: the superuser, no role and database of ours yet. */
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
                // The empty cluster itself need not survive a power cut; what the server writes later does.
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
                throw new IllegalStateException("initdb ended with " + exitCode + ":\n" + output
                        + "\n(PostgreSQL refuses to run as root; as root it needs `unshare --user`)");
            }
        } catch (InterruptedException e) {
            throw Postmaster.interrupted(e);
        } finally {
            Files.delete(passwordFile);
        }
    }

    /** Keeps the passwords: role and database are there. */
    void finish() throws IOException {
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

    /** Without the passwords. */
    @Override
    public String toString() {
        return path.toString();
    }
}
