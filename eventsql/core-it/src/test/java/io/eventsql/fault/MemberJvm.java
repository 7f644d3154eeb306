package io.eventsql.fault;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A process in which members run, one after the other ({@link ConsumerProcess}): one that has closed in order leaves it to
 * the next, of whatever test, because starting a JVM takes longer than most of what is done in it.
 */
final class MemberJvm {
    private static final Queue<MemberJvm> IDLE = new ConcurrentLinkedQueue<>();

    private final Process process;
    private final Path errors;
    private volatile @Nullable MemberProcess member;

    /** An idle one, or else a new one. */
    static MemberJvm take() throws IOException {
        for (MemberJvm idle = IDLE.poll(); idle != null; idle = IDLE.poll()) {
            if (idle.process.isAlive()) {
                return idle;
            }
        }
        return new MemberJvm();
    }

    private MemberJvm() throws IOException {
        errors = Files.createTempFile("members", ".err");
        errors.toFile().deleteOnExit();
        process = new ProcessBuilder(JavaProcesses.command(ConsumerProcess.class, List.of()))
                .redirectError(errors.toFile())
                .start();
        // Not a virtual thread: reading a pipe keeps its carrier, of which the proxies need some.
        Thread.ofPlatform().daemon().name("output-of-" + process.pid()).start(this::readOutput);
        // A frozen one would not notice that its standard input has ended.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    }

    /** Starts a member, which gets every line that is printed from now on. */
    void run(MemberProcess next, Map<String, String> options) throws IOException {
        member = next;
        send(options.entrySet().stream()
                .map(option -> option.getKey() + "=" + option.getValue())
                .collect(Collectors.joining("\t", "RUN\t", "")));
    }

    /** Another member may run in it; this one has ended. */
    void giveBack() {
        IDLE.add(this);
    }

    private void readOutput() {
        try (BufferedReader output = process.inputReader()) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                print(line);
            }
        } catch (IOException e) { // it was killed
            print("BROKEN " + e);
        }
        MemberProcess last = member;
        if (last != null) {
            last.ended();
        }
    }

    private void print(String line) {
        MemberProcess current = member;
        if (current == null) {
            throw new IllegalStateException("printed before a member ran: " + line);
        }
        current.printed(line);
    }

    void send(String command) throws IOException {
        process.getOutputStream().write((command + "\n").getBytes(StandardCharsets.US_ASCII));
        process.getOutputStream().flush();
    }

    Process process() {
        return process;
    }

    /** How many bytes it has logged. */
    int logged() throws IOException {
        return (int) Files.size(errors);
    }

    /** What it logged from such a number of bytes on. */
    String logged(int from) {
        try {
            byte[] all = Files.readAllBytes(errors);
            return new String(Arrays.copyOfRange(all, from, all.length), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
