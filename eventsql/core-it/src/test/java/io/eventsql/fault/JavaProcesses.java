package io.eventsql.fault;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Command lines of small Java processes with this one's class path. */
final class JavaProcesses {
    private JavaProcesses() {}

    static List<String> command(Class<?> mainClass, List<String> arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx96m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                mainClass.getName()));
        command.addAll(arguments);
        return command;
    }
}
