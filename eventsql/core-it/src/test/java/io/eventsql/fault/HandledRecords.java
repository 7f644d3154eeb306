package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.fault.ConsumerProcess.Mode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What the members of one plain consumer wrote down, all into one file, and what must hold of it whatever happened to
 * them. The order of the file is the order in which events were handled, over all processes.
 *
 * <ul>
 *   <li>At least once: every stored event is in it.
 *   <li>In order: of the first records of all events, those of one key are in the order in which they are stored. (A
 *       later record of the same event is a repetition; what is behind it may be repeated again, in order.)
 *   <li>Repeated only when not committed: what a member handles after it was assigned a partition begins at the offset
 *       it was assigned, and goes on without gap or repetition. So an event is repeated only by a member to which its
 *       partition was assigned anew, from an offset at or before it.
 *   <li>Fenced: once a partition was assigned to another member, the former one handles no more than what it had at hand.
 * </ul>
 */
record HandledRecords(List<Line> lines) {
    /** A handled event, or the assignment of a partition to a process, from that offset on. */
    record Line(boolean isAssignment, String process, int partition, long offset, String value, long nanos) {
        private static Line parse(String text) {
            String[] fields = text.split(" ", -1);
            return new Line(
                    fields[0].equals("A"),
                    fields[1],
                    Integer.parseInt(fields[2]),
                    Long.parseLong(fields[3]),
                    fields[4],
                    Long.parseLong(fields[5]));
        }

        private Place place() {
            return new Place(partition, offset);
        }
    }

    private record Place(int partition, long offset) {}

    private record Holding(String process, int partition) {}

    /** What the members have written so far; a line that is just being written is left out. */
    static HandledRecords read(Path file) throws IOException {
        String text = Files.exists(file) ? Files.readString(file) : "";
        return new HandledRecords(text.substring(0, text.lastIndexOf('\n') + 1)
                .lines()
                .map(Line::parse)
                .toList());
    }

    List<Line> handled() {
        return lines.stream().filter(line -> !line.isAssignment()).toList();
    }

    List<Line> handledBy(String process) {
        return handled().stream().filter(line -> line.process().equals(process)).toList();
    }

    /** How many different events were handled. */
    long distinct() {
        return handled().stream().map(Line::place).distinct().count();
    }

    /** Compares it with what is stored. */
    void verify(List<Ledger.Stored> stored, Mode mode) {
        verifyAtLeastOnce(stored);
        verifyOrder(stored);
        verifyAssignments(mode);
    }

    private void verifyAtLeastOnce(List<Ledger.Stored> stored) {
        Map<Place, String> values = new HashMap<>();
        for (Ledger.Stored event : stored) {
            values.put(new Place(event.partition(), event.offset()), event.value());
        }
        Set<Place> missing = new HashSet<>(values.keySet());
        for (Line line : handled()) {
            assertThat(line.value()).as("%s is what is stored", line).isEqualTo(values.get(line.place()));
            missing.remove(line.place());
        }
        assertThat(missing).as("stored and never handled").isEmpty();
    }

    private void verifyOrder(List<Ledger.Stored> stored) {
        Map<Place, String> keys = new HashMap<>();
        for (Ledger.Stored event : stored) {
            if (event.key() != null) {
                keys.put(new Place(event.partition(), event.offset()), event.key());
            }
        }
        Set<Place> seen = new HashSet<>();
        Map<String, Line> lastOfKey = new HashMap<>();
        for (Line line : handled()) {
            String key = keys.get(line.place());
            if (key != null && seen.add(line.place())) {
                Line last = lastOfKey.put(key, line);
                assertThat(last == null ? -1 : last.offset())
                        .as("handled for the first time: %s, before it %s", line, last)
                        .isLessThan(line.offset());
            }
        }
    }

    private void verifyAssignments(Mode mode) {
        Map<Integer, String> holders = new HashMap<>();
        Map<Holding, Long> nextOffsets = new HashMap<>();
        Map<Holding, Set<Long>> sinceAssigned = new HashMap<>();
        Map<Holding, Integer> afterLost = new HashMap<>();
        for (Line line : lines) {
            Holding holding = new Holding(line.process(), line.partition());
            if (line.isAssignment()) {
                holders.put(line.partition(), line.process());
                nextOffsets.put(holding, line.offset());
                sinceAssigned.put(holding, new HashSet<>());
                afterLost.remove(holding);
                continue;
            }
            assertThat(nextOffsets).as("assigned before %s", line).containsKey(holding);
            if (mode == Mode.KEYS) {
                assertThat(line.offset())
                        .as("%s is not before its assignment", line)
                        .isGreaterThanOrEqualTo(nextOffsets.get(holding));
                assertThat(sinceAssigned.get(holding).add(line.offset()))
                        .as("%s is once in its assignment", line)
                        .isTrue();
            } else {
                assertThat(line.offset())
                        .as("%s follows what was handled before in its assignment", line)
                        .isEqualTo(nextOffsets.merge(holding, 1L, Long::sum) - 1);
            }
            if (!line.process().equals(holders.get(line.partition()))) {
                assertThat(afterLost.merge(holding, 1, Integer::sum))
                        .as("%s was at hand when %s got the partition", line, holders.get(line.partition()))
                        .isLessThanOrEqualTo(mode.atHandMax());
            }
        }
    }

    /** Nothing went wrong, so nothing was handled twice. */
    void verifyNothingRepeated() {
        Set<Place> seen = new HashSet<>();
        for (Line line : handled()) {
            assertThat(seen.add(line.place())).as("%s is handled once", line).isTrue();
        }
    }
}
