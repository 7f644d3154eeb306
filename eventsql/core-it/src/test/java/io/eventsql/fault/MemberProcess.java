package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;

/** A member in a process of its own, as its test sees it: what it printed, and how it is hurt. Thread-safe. */
final class MemberProcess {
    /** Generous: only a hang must fail by it, on a machine that does other things, too. */
    static final Duration DEADLINE = Duration.ofSeconds(90);

    private final String name;
    private final MemberJvm jvm;
    private final int loggedBefore;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition printed = lock.newCondition();
    private final List<String> lines = new ArrayList<>();
    private boolean ended;
    private volatile boolean closed;

    private MemberProcess(String name, MemberJvm jvm, int loggedBefore) {
        this.name = name;
        this.jvm = jvm;
        this.loggedBefore = loggedBefore;
    }

    static MemberProcess start(Map<String, String> options) throws IOException {
        MemberJvm jvm = MemberJvm.take();
        MemberProcess member = new MemberProcess(options.get("name"), jvm, jvm.logged());
        jvm.run(member, options);
        return member;
    }

    /** Its process has printed a line. */
    void printed(String line) {
        lock.lock();
        try {
            lines.add(line);
            printed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Its process has ended. */
    void ended() {
        lock.lock();
        try {
            ended = true;
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
        jvm.send("HOLD");
        return awaitLine("HOLDING", from);
    }

    /** The held handler goes on. */
    void go() throws IOException {
        jvm.send("GO");
    }

    void freeze() throws IOException, InterruptedException {
        signal("-STOP");
    }

    void thaw() throws IOException, InterruptedException {
        signal("-CONT");
    }

    private void signal(String signal) throws IOException, InterruptedException {
        int exit = new ProcessBuilder(
                        "kill", signal, Long.toString(jvm.process().pid()))
                .start()
                .waitFor();
        assertThat(exit).as("kill %s of %s", signal, this).isZero();
    }

    /** {@code kill -9}. */
    void kill() throws InterruptedException {
        jvm.process().destroyForcibly().waitFor();
    }

    /** Begins to close it in order. */
    void beginClose() throws IOException {
        jvm.send("CLOSE");
    }

    /** Waits until it has closed in order, with all handlers ended; another member may run in its process then. */
    void awaitClosed() throws InterruptedException {
        assertThat(awaitLine("CLOSED")).as("closed in time: %s", this).isEqualTo("true");
        awaitLine("DONE");
        closed = true;
        jvm.giveBack();
    }

    void close() throws IOException, InterruptedException {
        beginClose();
        awaitClosed();
    }

    boolean isAlive() {
        return !closed && jvm.process().isAlive();
    }

    /** Ends it, unless it has closed, whatever it does: a frozen process dies of this signal, too. */
    void destroy() {
        if (!closed) {
            jvm.process().destroyForcibly();
        }
    }

    @Override
    public String toString() {
        List<String> all = lines();
        return name + " printed\n" + String.join("\n", all.subList(Math.max(0, all.size() - 60), all.size()))
                + "\nand logged\n" + jvm.logged(loggedBefore);
    }
}
