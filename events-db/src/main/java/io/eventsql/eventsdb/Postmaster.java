package io.eventsql.eventsdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The process of one running server, whose children are all other processes of it. It does not outlive this process: a
 * guard ends it when this process dies without having done so. Not thread-safe.
 */
final class Postmaster {

    /** Crash recovery replays up to {@code max_wal_size} before the server is ready. */
    private static final Duration START_DEADLINE = Duration.ofMinutes(2);

    private static final Duration STOP_DEADLINE = Duration.ofMinutes(1);
    private static final Duration POLL_INTERVAL = Duration.ofMillis(20);

    /**
     * A shell that waits for a line from this process. Where its input ends without one, this process has died, even by
     * SIGKILL: then it ends the server, and removes a temporary folder.
     */
    private static final String GUARD_SCRIPT = """
            trap '' INT TERM HUP
            read -r word && exit 0
            kill -QUIT "$1"
            while kill -0 "$1"; do sleep 0.2; done
            if [ -n "$2" ]; then rm -rf "$2"; fi
            """;

    private final Process process;
    private final Process guard;

    private Postmaster(Process process, Process guard) {
        this.process = process;
        this.guard = guard;
    }

    /** The port was taken by somebody else between its choice and its use. */
    static final class PortTakenException extends IllegalStateException {
        PortTakenException(String message) {
            super(message);
        }
    }

    /** What a server is started on: PostgreSQL's folder, its log, and the folder that goes when this process dies, or "". */
    record ServerPaths(Path data, Path log, String temporaryFolder) {}

    /**
     * Starts a server and waits until it accepts connections.
     *
     * @throws PortTakenException if another process listens on the port
     * @throws IllegalStateException if the server ends while starting, with what it logged, or is not ready in time
     */
    static Postmaster start(PostgresBinaries binaries, ServerPaths paths, String host, int port) throws IOException {
        long logStart = Files.exists(paths.log) ? Files.size(paths.log) : 0;
        var arguments = List.of(
                "-D",
                paths.data.toString(),
                "-c",
                "listen_addresses=" + host,
                "-c",
                "port=" + port,
                "-c",
                "unix_socket_directories=");
        Process process = binaries.process("postgres", arguments)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(paths.log.toFile()))
                .start();
        Process guard = new ProcessBuilder(
                        "sh",
                        "-c",
                        GUARD_SCRIPT,
                        "events-db-guard",
                        Long.toString(process.pid()),
                        paths.temporaryFolder)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        var postmaster = new Postmaster(process, guard);
        boolean ready = false;
        try {
            postmaster.awaitReady(paths, logStart);
            ready = true;
            return postmaster;
        } finally {
            if (!ready) {
                postmaster.stopImmediately();
            }
        }
    }

    long processId() {
        return process.pid();
    }

    /** Rolls open transactions back, takes a checkpoint, ends. */
    void stopOrderly() {
        stop("INT");
    }

    /** Ends without a checkpoint; the next start recovers. */
    void stopImmediately() {
        stop("QUIT");
    }

    /** Kills every process of the server by SIGKILL. Returns when all are gone. */
    void crash() {
        try {
            // Stopped first, so that it neither starts another process nor sees one die.
            Signals.send("STOP", process.pid());
            var children = new ArrayList<ProcessHandle>(process.descendants().toList());
            children.forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly().waitFor();
            while (children.stream().anyMatch(ProcessHandle::isAlive)) {
                pause();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw interrupted(e);
        } finally {
            dismissGuard();
        }
    }

    private void stop(String signal) {
        try {
            if (process.isAlive()) {
                Signals.send(signal, process.pid());
                if (!process.waitFor(STOP_DEADLINE.toMillis(), TimeUnit.MILLISECONDS)) {
                    crash();
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw interrupted(e);
        } finally {
            dismissGuard();
        }
    }

    private void awaitReady(ServerPaths paths, long logStart) throws IOException {
        long deadline = System.nanoTime() + START_DEADLINE.toNanos();
        while (!isReady(paths.data)) {
            if (!process.isAlive()) {
                byte[] log = Files.readAllBytes(paths.log);
                int from = Math.toIntExact(logStart);
                String message = "PostgreSQL ended while starting:\n" + new String(log, from, log.length - from, UTF_8);
                throw message.contains("could not bind")
                        ? new PortTakenException(message)
                        : new IllegalStateException(message);
            }
            if (System.nanoTime() - deadline > 0) {
                throw new IllegalStateException(
                        "PostgreSQL is not ready after " + START_DEADLINE + ", see " + paths.log);
            }
            try {
                pause();
            } catch (InterruptedException e) {
                throw interrupted(e);
            }
        }
    }

    /** As pg_ctl does it: the server says so itself in line 8 of its file. */
    private boolean isReady(Path data) throws IOException {
        Path file = data.resolve("postmaster.pid");
        if (!Files.exists(file)) {
            return false;
        }
        List<String> lines = Files.readString(file).lines().toList();
        return lines.size() >= 8
                && lines.get(0).equals(Long.toString(process.pid()))
                && lines.get(7).strip().equals("ready");
    }

    private void dismissGuard() {
        try (var out = guard.outputWriter(UTF_8)) {
            out.write("done\n");
        } catch (IOException e) {
            // It is gone already.
            guard.destroyForcibly();
        }
    }

    private static void pause() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(POLL_INTERVAL.toNanos());
    }

    static IllegalStateException interrupted(InterruptedException e) {
        Thread.currentThread().interrupt();
        return new IllegalStateException("interrupted while waiting for PostgreSQL", e);
    }
}
