package io.eventsql.runner.sample;

import java.io.IOException;
import java.nio.file.Files;
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
 * serves the probes of one second. It reads only processes that are new; otherwise, a machine with many processes would
 * spend a noticeable part of a processor on those of others. Thread-safe.
 */
public final class ProcessTree {
    /** The unit of CPU times in /proc, the same on all current Linux systems. */
    private static final double TICKS_PER_SECOND = 100;

    private static final double NANOS_PER_SECOND = 1e9;
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
     * @param parents the parent of each process when it was first listed
     * @param children the processes by parent
     */
    private record Listing(long atNanos, Map<Long, Long> parents, Map<Long, List<Long>> children) {}

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
        Map<Long, Double> cpuSeconds = new HashMap<>();
        for (long member : tree(process, nowNanos)) {
            List<String> stat = stat(member);
            if (stat != null) {
                cpuSeconds.put(member, ticks(stat, USER_TICKS, SYSTEM_TICKS) / TICKS_PER_SECOND);
            }
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
        long ticks = 0;
        for (long member : tree(process, nowNanos)) {
            List<String> stat = stat(member);
            ticks += stat == null ? 0 : ticks(stat, USER_TICKS, ENDED_CHILDREN_TICKS);
        }
        return ticks / TICKS_PER_SECOND;
    }

    /** Returns the CPU time since its start of a process with this name, in nanoseconds; 0 if there is none. */
    long cpuNanos(long process, String name) {
        List<String> lines = lines(process, "stat");
        if (lines.isEmpty() || !lines.getFirst().contains("(" + name + ")")) {
            return 0;
        }
        long ticks = ticks(fields(lines.getFirst()), USER_TICKS, SYSTEM_TICKS);
        return Math.round(ticks / TICKS_PER_SECOND * NANOS_PER_SECOND);
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
     * Returns the memory in use by the processes of a tree: that of each alone, and the shared memory and the files of
     * the one that has most in memory. These counters cost little. The proportional size is exact, but the system would
     * visit each page of each process for it.
     */
    double residentMb(Iterable<Long> processes) {
        double own = 0;
        double shared = 0;
        double files = 0;
        for (long process : processes) {
            List<String> status = lines(process, "status");
            own += kib(status, "RssAnon:");
            shared = Math.max(shared, kib(status, "RssShmem:"));
            files = Math.max(files, kib(status, "RssFile:"));
        }
        return (own + shared + files) * KIB / BYTES_PER_MB;
    }

    /** Returns a process and its descendants. */
    private synchronized List<Long> tree(long root, long nowNanos) throws IOException {
        Listing listing = last;
        if (listing == null || Math.abs(nowNanos - listing.atNanos) > LISTING_AGE_MAX_NANOS) {
            listing = list(nowNanos, listing == null ? Map.of() : listing.parents);
            last = listing;
        }
        if (!listing.parents.containsKey(root)) {
            throw new IOException("no such process: " + root);
        }
        List<Long> members = new ArrayList<>();
        Deque<Long> open = new ArrayDeque<>(List.of(root));
        while (!open.isEmpty()) {
            long process = open.remove();
            members.add(process);
            open.addAll(listing.children.getOrDefault(process, List.of()));
        }
        return members;
    }

    private Listing list(long nowNanos, Map<Long, Long> known) throws IOException {
        Listing listing = new Listing(nowNanos, new HashMap<>(), new HashMap<>());
        String[] names = proc.toFile().list((folder, name) -> Character.isDigit(name.charAt(0)));
        if (names == null) {
            throw new IOException("cannot list " + proc);
        }
        for (String name : names) {
            long process = Long.parseLong(name);
            Long parent = known.get(process);
            List<String> stat = parent == null ? stat(process) : null;
            if (stat != null) {
                parent = Long.valueOf(stat.get(PARENT));
            }
            if (parent != null) {
                listing.parents.put(process, parent);
                listing.children
                        .computeIfAbsent(parent, added -> new ArrayList<>())
                        .add(process);
            }
        }
        return listing;
    }

    /** Returns the number after a name; 0 if it is missing. */
    private static double kib(List<String> lines, String name) {
        for (String line : lines) {
            if (line.startsWith(name)) {
                return Double.parseDouble(line.substring(name.length()).strip().split(" ", -1)[0]);
            }
        }
        return 0;
    }

    private List<String> lines(long process, String file) {
        try {
            return Files.readAllLines(proc.resolve(String.valueOf(process)).resolve(file));
        } catch (IOException e) {
            // The process has just ended or belongs to another user.
            return List.of();
        }
    }

    /** Returns the fields after the name of a process; {@code null} if it has just ended. */
    private @Nullable List<String> stat(long process) throws IOException {
        Path folder = proc.resolve(String.valueOf(process));
        try {
            return fields(Files.readString(folder.resolve("stat")));
        } catch (IOException e) {
            if (Files.exists(folder)) {
                throw e;
            }
            return null;
        }
    }

    private static long ticks(List<String> stat, int first, int last) {
        return stat.subList(first, last + 1).stream().mapToLong(Long::parseLong).sum();
    }

    /** The name itself may contain spaces and parentheses. */
    private static List<String> fields(String stat) {
        return List.of(stat.substring(stat.lastIndexOf(')') + 2).strip().split(" ", ENDED_CHILDREN_TICKS + 2));
    }
}
