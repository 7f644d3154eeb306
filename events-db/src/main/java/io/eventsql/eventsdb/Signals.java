package io.eventsql.eventsdb;

import java.io.IOException;

/** Signals that {@link ProcessHandle} cannot send. */
final class Signals {

    private Signals() {}

    /** Sends a signal such as {@code INT} to one process by its id; nothing happens where the process is gone. */
    static void send(String signal, long processId) throws IOException {
        // The shell's own kill: /bin/kill is missing on small systems.
        Process shell = new ProcessBuilder("sh", "-c", "kill -" + signal + " " + processId)
                .redirectErrorStream(true)
                .start();
        try (var output = shell.getInputStream()) {
            output.readAllBytes();
        }
    }
}
