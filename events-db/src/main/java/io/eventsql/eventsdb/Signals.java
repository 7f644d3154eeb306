package io.eventsql.eventsdb;

import java.io.IOException;

/** Sends signals that {@link ProcessHandle} does not support. */
final class Signals {

    private Signals() {}

    /** Sends a signal such as {@code INT} to a process. Does nothing if the process has ended. */
    static void send(String signal, long processId) throws IOException {
        // Uses the shell builtin, because minimal systems lack /bin/kill.
        Process shell = new ProcessBuilder("sh", "-c", "kill -" + signal + " " + processId)
                .redirectErrorStream(true)
                .start();
        try (var output = shell.getInputStream()) {
            output.readAllBytes();
        }
    }
}
