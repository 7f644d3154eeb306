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

/**
 * Reads the resource usage of processes and their descendants from Linux's {@code /proc}. One listing of all processes
 * serves the probes of one second, because listing them costs much more than adding up the members of a tree.
 * Thread-safe.
 */
public final class ProcessTree {
    /** The unit of CPU times in /proc, the same on all current Linux systems. */
    private static final double TICKS_PER_SECOND = 100;

    private static final double BYTES_PER_MB = 1e6;
    private static final double KIB = 1_024;

    /** Indexes of the fields after the name in {@code stat}. */
    private static final int PARENT = 1;

    private static final int USER_TICKS = 11;
    private static final int SYSTEM_TICKS = 12;

    /** The index of the system ticks of ended children; those of their user ticks precede it. */
    private static final int ENDED_CHILDREN_TICKS = 14;

    /** The age up to which a listing is used again: less than the interval of the samples. */
    private static final long LISTING_AGE_MAX_NANOS = 500_000_000;

    /**
     * All processes of the machine.
     *
     * @param atNanos the time of the listing on the monotonic clock
     * @param stats the fields after the name of each process
     */
    private record Listing(long atNanos, Map<Long, List<String>> stats) {}

    private final Path proc;
    private @Nullable Listing last;

    /** @param proc {@code /proc}; another folder in tests */
    public ProcessTree(Path proc) {
        this.proc = proc;
    }

    /**
     * Returns the CPU time since its start of a process and of each of its descendants, in seconds.
     *
     * @param nowNanos the time on the monotonic clock
     * @throws IOException if the process does not exist
     */
    Map<Long, Double> cpuSeconds(long process, long nowNanos) throws IOException {
        Map<Long, List<String>> stats = list(nowNanos, process);
        Map<Long, Double> cpuSeconds = new HashMap<>();
        for (long member : tree(process, stats)) {
            List<String> stat = stats.getOrDefault(member, List.of());
            double ticks = Double.parseDouble(stat.get(USER_TICKS)) + Double.parseDouble(stat.get(SYSTEM_TICKS));
            cpuSeconds.put(member, ticks / TICKS_PER_SECOND);
        }
        return cpuSeconds;
    }

    /**
     * Returns the CPU time since its start of a process and of its descendants, in seconds, with those that have ended:
     * what a process has waited for is in its own counters.
     *
     * @param nowNanos the time on the monotonic clock
     * @throws IOException if the process does not exist
     */
    public double totalCpuSeconds(long process, long nowNanos) throws IOException {
        Map<Long, List<String>> stats = list(nowNanos, process);
        return tree(process, stats).stream()
                        .flatMap(member ->
                                stats
                                        .getOrDefault(member, List.of())
                                        .subList(USER_TICKS, ENDED_CHILDREN_TICKS + 1)
                                        .stream())
                        .mapToLong(Long::parseLong)
                        .sum()
                / TICKS_PER_SECOND;
    }

    /**
     * Returns the parent of a process.
     *
     * @throws IOException if the process does not exist
     */
    public long parent(long process) throws IOException {
        String stat = Files.readString(proc.resolve(process + "/stat"));
        return Long.parseLong(fields(stat).get(PARENT));
    }

    /**
     * Returns the memory in use by processes; shared memory counts once where the system reports it. This is expensive:
     * the system visits each page of each process.
     */
    double residentMb(Iterable<Long> processes) throws IOException {
        double residentKib = 0;
        for (long process : processes) {
            residentKib += residentKib(process);
        }
        return residentKib * KIB / BYTES_PER_MB;
    }

    private synchronized Map<Long, List<String>> list(long nowNanos, long process) throws IOException {
        Listing known = last;
        if (known == null || Math.abs(nowNanos - known.atNanos) > LISTING_AGE_MAX_NANOS) {
            known = new Listing(nowNanos, stats());
            last = known;
        }
        if (!known.stats.containsKey(process)) {
            throw new IOException("no such process: " + process);
        }
        return known.stats;
    }

    /** Returns the proportional size where it is readable, otherwise the resident size. */
    private double residentKib(long process) throws IOException {
        Double proportional = field(process, "smaps_rollup", "Pss:");
        Double resident = proportional == null ? field(process, "status", "VmRSS:") : proportional;
        return resident == null ? 0 : resident;
    }

    /** Returns the number after a name in a file of a process; {@code null} if missing or unreadable. */
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
            // The process has just ended or belongs to another user.
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

    /** Returns the fields after the name of each process. The name itself may contain spaces and parentheses. */
    private Map<Long, List<String>> stats() throws IOException {
        Map<Long, List<String>> stats = new HashMap<>();
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(proc, "[0-9]*")) {
            for (Path folder : folders) {
                try {
                    String stat = Files.readString(folder.resolve("stat"));
                    stats.put(Long.valueOf(folder.getFileName().toString()), fields(stat));
                } catch (NoSuchFileException e) {
                    // The process has just ended.
                } catch (IOException e) {
                    if (Files.exists(folder)) {
                        throw e;
                    }
                }
            }
        }
        return stats;
    }

    private static List<String> fields(String stat) {
        return List.of(stat.substring(stat.lastIndexOf(')') + 2).strip().split(" ", ENDED_CHILDREN_TICKS + 2));
    }
}
