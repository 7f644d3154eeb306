package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A Java process of its own with this one's class path, to be killed. Closing it kills it. */
final class ChildProcess implements AutoCloseable {
    private final Process process;
    private final BufferedReader output;
    private final Path errors;

    /** @param folder for its error output */
    ChildProcess(Path folder, Class<?> mainClass, List<String> arguments) throws IOException {
        errors = Files.createTempFile(folder, mainClass.getSimpleName(), ".err");
        process = new ProcessBuilder(JavaProcesses.command(mainClass, arguments))
                .redirectError(errors.toFile())
                .start();
        output = process.inputReader();
    }

    /** Reads its output up to this line. */
    void awaitLine(String expected) throws IOException {
        String line = output.readLine();
        while (line != null && !line.equals(expected)) {
            line = output.readLine();
        }
        if (line == null) {
            fail("the process ended before %s: %s", expected, Files.readString(errors));
        }
    }

    /** SIGKILL, and waits until the process is gone. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Ends its input, upon which it ends in order. */
    void finish() throws IOException, InterruptedException {
        process.getOutputStream().close();
        awaitLine("DONE");
        assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
