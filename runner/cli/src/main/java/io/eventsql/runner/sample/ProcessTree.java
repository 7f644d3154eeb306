package io.eventsql.runner.sample;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads what a process and its descendants use from Linux's {@code /proc}. */
final class ProcessTree {
    /** The unit of processor times in /proc, the same on every Linux of today. */
    private static final double TICKS_PER_SECOND = 100;

    private static final double BYTES_PER_MB = 1e6;
    private static final double KIB = 1_024;

    /** Where in {@code stat} the fields behind the name are: parent, user ticks, system ticks. */
    private static final int PARENT = 1;

    private static final int USER_TICKS = 11;
    private static final int SYSTEM_TICKS = 12;

    /**
     * What the processes have used since they started, and hold now.
     *
     * @param cpuSeconds of each process
     * @param residentMb with shared memory counted once, as far as the system tells
     */
    record Usage(Map<Long, Double> cpuSeconds, double residentMb) {}

    private final Path proc;

    /** @param proc the folder, {@code /proc} but for tests */
    ProcessTree(Path proc) {
        this.proc = proc;
    }

    /**
     * Looks at a process and all its descendants.
     *
     * @throws IOException if the process is not there
     */
    Usage usage(long process) throws IOException {
        Map<Long, List<String>> stats = stats();
        if (!stats.containsKey(process)) {
            throw new IOException("there is no process " + process);
        }
        Map<Long, Double> cpuSeconds = new HashMap<>();
        double residentKib = 0;
        for (long member : tree(process, stats)) {
            List<String> stat = stats.getOrDefault(member, List.of());
            double ticks = Double.parseDouble(stat.get(USER_TICKS)) + Double.parseDouble(stat.get(SYSTEM_TICKS));
            cpuSeconds.put(member, ticks / TICKS_PER_SECOND);
            residentKib += residentKib(member);
        }
        return new Usage(cpuSeconds, residentKib * KIB / BYTES_PER_MB);
    }

    /** Proportional where that may be read, else resident. */
    private double residentKib(long process) throws IOException {
        Double proportional = field(process, "smaps_rollup", "Pss:");
        Double resident = proportional == null ? field(process, "status", "VmRSS:") : proportional;
        return resident == null ? 0 : resident;
    }

    /** The number behind a name in a file of a process; {@code null} where it is not there or may not be read. */
    private @Nullable Double field(long process, String file, String name) throws IOException {
        for (String line : lines(process, file)) {
            if (line.startsWith(name)) {
                return Double.parseDouble(line.substring(name.length()).strip().split(" ", -1)[0]);
            }
        }
        return null;
    }

    private List<String> lines(long process, String file) {
        try {
            return Files.readAllLines(proc.resolve(String.valueOf(process)).resolve(file));
        } catch (IOException e) {
            // It has just ended, or belongs to somebody else.
            return List.of();
        }
    }

    private static List<Long> tree(long root, Map<Long, List<String>> stats) {
        Map<Long, List<Long>> children = new HashMap<>();
        stats.forEach((process, stat) -> children.computeIfAbsent(
                        Long.parseLong(stat.get(PARENT)), parent -> new ArrayList<>())
                .add(process));
        List<Long> members = new ArrayList<>();
        Deque<Long> open = new ArrayDeque<>(List.of(root));
        while (!open.isEmpty()) {
            long process = open.remove();
            members.add(process);
            open.addAll(children.getOrDefault(process, List.of()));
        }
        return members;
    }

    /** The fields behind the name of each process, which may hold spaces and brackets itself. */
    private Map<Long, List<String>> stats() throws IOException {
        Map<Long, List<String>> stats = new HashMap<>();
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(proc, "[0-9]*")) {
            for (Path folder : folders) {
                try {
                    String stat = Files.readString(folder.resolve("stat"));
                    stats.put(
                            Long.valueOf(folder.getFileName().toString()),
                            List.of(stat.substring(stat.lastIndexOf(')') + 2)
                                    .strip()
                                    .split(" ", -1)));
                } catch (NoSuchFileException e) {
                    // It has just ended.
                } catch (IOException e) {
                    if (Files.exists(folder)) {
                        throw e;
                    }
                }
            }
        }
        return stats;
    }
}
