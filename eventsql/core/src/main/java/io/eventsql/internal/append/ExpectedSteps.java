package io.eventsql.internal.append;

import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.sql.ExpectedAppendStatement.Steps;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The steps in which the database compares versions of keys for a batch, in the order of its events. The same batch always has
 * the same steps. Used by one thread.
 */
final class ExpectedSteps {
    private final List<PartitionGroup> groups;
    private final int[] ofEvents;
    private final List<Integer> keys = new ArrayList<>();
    private final List<@Nullable PublishCall> calls = new ArrayList<>();
    private final List<Integer> counts = new ArrayList<>();
    private final List<Integer> keyGroups = new ArrayList<>();
    private final List<String> keyNames = new ArrayList<>();

    /** @param groups the events of the batch, in the lock order */
    ExpectedSteps(List<PartitionGroup> groups) {
        this.groups = groups;
        int events = 0;
        for (PartitionGroup group : groups) {
            events += group.size();
        }
        ofEvents = new int[events];
        int row = 0;
        for (int g = 0; g < groups.size(); g++) {
            addGroup(g, row);
            row += groups.get(g).size();
        }
    }

    private void addGroup(int number, int firstRow) {
        PartitionGroup group = groups.get(number);
        Map<String, Integer> ownKeys = new HashMap<>();
        for (int i = 0; i < group.size(); i++) {
            if (group.call(i).expectsVersion()) {
                ownKeys.computeIfAbsent(Objects.requireNonNull(group.event(i).key()), key -> {
                    keyGroups.add(number + 1);
                    keyNames.add(key);
                    return keyNames.size();
                });
            }
        }
        PublishCall last = null;
        for (int i = 0; i < group.size(); i++) {
            PublishCall call = group.call(i);
            Valid event = group.event(i);
            Integer key = event.key() == null ? null : ownKeys.get(event.key());
            if (key == null) {
                continue;
            }
            if (call.expectsVersion() && call == last) {
                counts.set(counts.size() - 1, counts.getLast() + 1);
            } else {
                keys.add(key);
                calls.add(call.expectsVersion() ? call : null);
                counts.add(1);
            }
            ofEvents[firstRow + i] = keys.size();
            last = call;
        }
    }

    /** Returns the steps as the statement takes them. */
    Steps toStatement() {
        @Nullable Long[] expected = new Long[calls.size()];
        for (int i = 0; i < expected.length; i++) {
            PublishCall call = calls.get(i);
            expected[i] = call == null ? null : call.expectedVersion();
        }
        return new Steps(
                ofEvents, ints(keys), expected, ints(counts), ints(keyGroups), keyNames.toArray(new String[0]));
    }

    private static int[] ints(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * Records what the database has left out.
     *
     * @param conflicts pairs of a step and the version that its key had
     * @return the calls that were not stored, with that version
     */
    Map<PublishCall, Long> leaveOut(long[] conflicts) {
        Map<PublishCall, Long> actualVersions = new HashMap<>();
        for (int i = 0; i < conflicts.length; i += 2) {
            int step = Math.toIntExact(conflicts[i] - 1);
            actualVersions.put(Objects.requireNonNull(calls.get(step)), conflicts[i + 1]);
            groups.get(keyGroups.get(keys.get(step) - 1) - 1).leftOut(counts.get(step));
        }
        return actualVersions;
    }
}
