package io.eventsql.eventsdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The main process of a running server and parent of its other processes. It never outlives this process: a guard stops
 * it if this process dies without doing so. Not thread-safe.
 */
final class Postmaster {

    /** Crash recovery replays up to {@code max_wal_size} before the server is ready. */
    private static final Duration START_DEADLINE = Duration.ofMinutes(2);

    private static final Duration STOP_DEADLINE = Duration.ofMinutes(1);
    private static final Duration POLL_INTERVAL = Duration.ofMillis(20);

    /**
     * A shell that waits for a line from this process. If its input ends without one, this process has died, possibly
     * by SIGKILL. The shell then stops the server and removes a temporary folder.
     */
    private static final String GUARD_SCRIPT = """
            trap '' INT TERM HUP
            read -r word && exit 0
            kill -QUIT "$1"
            while kill -0 "$1"; do sleep 0.2; done
            if [ -n "$2" ]; then rm -rf "$2"; fi
            """;

    private static final String PID_FILE = "postmaster.pid";

    private final Process process;
    private final Process guard;

    private Postmaster(Process process, Process guard) {
        this.process = process;
        this.guard = guard;
    }

    /** Thrown if another process took the port between its selection and its use. */
    static final class PortTakenException extends IllegalStateException {
        PortTakenException(String message) {
            super(message);
        }
    }

    /**
     * The paths of a server: the data folder, the log file, and a temporary folder to remove when this process dies, or
     * "".
     */
    record ServerPaths(Path data, Path log, String temporaryFolder) {}

    /**
     * Starts a server and waits until it accepts connections.
     *
     * @throws PortTakenException if another process listens on the port
     * @throws IllegalStateException if the server fails to start, with its log output, or is not ready in time
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

    /** Returns whether a server that has ended was killed: otherwise it would have removed its pid file. */
    static boolean wasKilled(Path data) {
        return Files.exists(data.resolve(PID_FILE));
    }

    long processId() {
        return process.pid();
    }

    /** Fast shutdown: rolls back open transactions, writes a checkpoint and exits. */
    void stopFast() {
        stop("INT");
    }

    /** Immediate shutdown without a checkpoint. The next start performs crash recovery. */
    void stopImmediately() {
        stop("QUIT");
    }

    /** Kills all server processes by SIGKILL. Returns when all have ended. */
    void crash() {
        try {
            // Stops the postmaster first, so that it neither starts another process nor notices a dead one.
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
                String message = "PostgreSQL failed to start:\n" + new String(log, from, log.length - from, UTF_8);
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

    /** Returns whether the server is ready, according to line 8 of its pid file, like pg_ctl. */
    private boolean isReady(Path data) throws IOException {
        List<String> lines;
        try {
            lines = Files.readAllLines(data.resolve(PID_FILE));
        } catch (NoSuchFileException e) { // not written yet; or the server removes that of one that was killed
            return false;
        }
        return lines.size() >= 8
                && lines.get(0).equals(Long.toString(process.pid()))
                && lines.get(7).strip().equals("ready");
    }

    private void dismissGuard() {
        try (var out = guard.outputWriter(UTF_8)) {
            out.write("done\n");
        } catch (IOException e) {
            // The guard has already ended.
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
