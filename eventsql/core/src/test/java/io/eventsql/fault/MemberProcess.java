package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;

/** A running {@link ConsumerProcess}, as its test sees it: what it printed, and how it is hurt. Thread-safe. */
final class MemberProcess {
    /** Generous: only a hang must fail by it, on a machine that does other things, too. */
    static final Duration DEADLINE = Duration.ofSeconds(90);

    private final String name;
    private final Process process;
    private final Path errors;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition printed = lock.newCondition();
    private final List<String> lines = new ArrayList<>();
    private boolean ended;

    private MemberProcess(String name, Process process, Path errors) {
        this.name = name;
        this.process = process;
        this.errors = errors;
        // Not a virtual thread: reading a pipe keeps its carrier, of which the proxies need some.
        Thread.ofPlatform().daemon().name("output-of-" + name).start(this::readOutput);
        // A frozen one would not notice that its standard input has ended.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    }

    /** Starts a process; its standard error goes to a file in the folder. */
    static MemberProcess start(Path folder, Map<String, String> options) throws IOException {
        String name = options.get("name");
        Path errors = folder.resolve(name + ".err");
        List<String> arguments = new ArrayList<>();
        options.forEach((option, value) -> arguments.add(option + "=" + value));
        List<String> command = JavaProcesses.command(ConsumerProcess.class, arguments);
        return new MemberProcess(
                name, new ProcessBuilder(command).redirectError(errors.toFile()).start(), errors);
    }

    private void readOutput() {
        try (BufferedReader output = process.inputReader()) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                add(line);
            }
        } catch (IOException e) { // it was killed
            add("BROKEN " + e);
        }
        lock.lock();
        try {
            ended = true;
            printed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void add(String line) {
        lock.lock();
        try {
            lines.add(line);
            printed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    String name() {
        return name;
    }

    List<String> lines() {
        lock.lock();
        try {
            return List.copyOf(lines);
        } finally {
            lock.unlock();
        }
    }

    List<String> lines(String prefix) {
        return lines().stream().filter(line -> line.startsWith(prefix)).toList();
    }

    /** How many lines there are: where {@link #awaitLine(String, int)} may begin. */
    int position() {
        return lines().size();
    }

    /** Waits for a line that begins so; returns the rest of it. */
    String awaitLine(String prefix) throws InterruptedException {
        return awaitLine(prefix, 0);
    }

    /** The same, from a position on. */
    String awaitLine(String prefix, int from) throws InterruptedException {
        return await(line -> line.startsWith(prefix), prefix, from)
                .substring(prefix.length())
                .strip();
    }

    private String await(Predicate<String> wanted, String what, int from) throws InterruptedException {
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        lock.lockInterruptibly();
        try {
            for (int next = from; ; ) {
                for (; next < lines.size(); next++) {
                    if (wanted.test(lines.get(next))) {
                        return lines.get(next);
                    }
                }
                long left = deadline - System.nanoTime();
                if (ended || left <= 0) {
                    return fail(name + (ended ? " ended" : " did not") + " before it printed " + what + "\n" + this);
                }
                printed.awaitNanos(left);
            }
        } finally {
            lock.unlock();
        }
    }

    /** The next event it handles waits in its handler; returns its partition and value once it does. */
    String hold() throws IOException, InterruptedException {
        int from = position();
        send("HOLD");
        return awaitLine("HOLDING", from);
    }

    /** The held handler goes on. */
    void go() throws IOException {
        send("GO");
    }

    private void send(String command) throws IOException {
        process.getOutputStream().write((command + "\n").getBytes(StandardCharsets.US_ASCII));
        process.getOutputStream().flush();
    }

    void freeze() throws IOException, InterruptedException {
        signal("-STOP");
    }

    void thaw() throws IOException, InterruptedException {
        signal("-CONT");
    }

    private void signal(String signal) throws IOException, InterruptedException {
        int exit = new ProcessBuilder("kill", signal, Long.toString(process.pid()))
                .start()
                .waitFor();
        assertThat(exit).as("kill %s of %s", signal, this).isZero();
    }

    /** {@code kill -9}. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Begins to close it in order. */
    void beginClose() throws IOException {
        send("CLOSE");
    }

    /** Waits until it has closed in order, with all handlers ended. */
    void awaitClosed() throws InterruptedException {
        assertThat(awaitLine("CLOSED")).as("closed in time: %s", this).isEqualTo("true");
        awaitLine("DONE");
        assertThat(process.waitFor(DEADLINE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    }

    void close() throws IOException, InterruptedException {
        beginClose();
        awaitClosed();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    /** Ends it, whatever it does: a frozen process dies of this signal, too. */
    void destroy() {
        process.destroyForcibly();
    }

    @Override
    public String toString() {
        try {
            List<String> all = lines();
            return name + " printed\n" + String.join("\n", all.subList(Math.max(0, all.size() - 60), all.size()))
                    + "\nand logged\n" + Files.readString(errors);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
