package io.eventsql.eventsdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Creates clusters with PostgreSQL's initdb. */
final class Initdb {
    private Initdb() {}

    /**
     * Creates a cluster that has only the superuser.
     *
     * @param data the folder of its data, which is created; its parent exists
     * @param isSynced whether the empty cluster survives a power failure, like later writes of the server
     */
    static void run(PostgresBinaries binaries, Path data, String superuserPassword, boolean isSynced)
            throws IOException {
        Path passwordFile = Files.createTempFile(data.resolve("..").normalize(), "password", "");
        try {
            Files.writeString(passwordFile, superuserPassword);
            var arguments = new ArrayList<>(List.of(
                    "--pgdata=" + data,
                    "--username=" + ServerFolder.SUPERUSER,
                    "--pwfile=" + passwordFile,
                    "--auth=scram-sha-256",
                    "--set=" + ServerFolder.SCRAM_ITERATIONS,
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-instructions"));
            if (!isSynced) {
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
}
