package io.eventsql.internal.wake;

import java.util.Collection;

/**
 * The text of a wake-up signal: who sends it, and for which partitions there is something new. {@code
 * <sender> <stream id>:<partition>,…}, or {@code <sender> *} for all.
 */
final class Signal {
    /** More are not listed one by one: NOTIFY's payload has less than 8,000 bytes. */
    private static final int PARTITIONS_LISTED_MAX = 300;

    private static final String ALL = "*";

    private Signal() {}

    /** A partition with something new. */
    record Partition(int streamId, int partition) {}

    static String encode(String sender, Collection<Partition> partitions) {
        if (partitions.size() > PARTITIONS_LISTED_MAX) {
            return sender + " " + ALL;
        }
        StringBuilder text = new StringBuilder(sender);
        char separator = ' ';
        for (Partition one : partitions) {
            text.append(separator).append(one.streamId()).append(':').append(one.partition());
            separator = ',';
        }
        return text.toString();
    }

    /** Tells the targets, unless the signal is this process's own. What is no signal of ours wakes everything. */
    static void dispatch(String text, String self, Iterable<WakeUp.Target> targets) {
        int space = text.indexOf(' ');
        if (space >= 0 && text.substring(0, space).equals(self)) {
            return;
        }
        String[] partitions = text.substring(space + 1).split(",", -1);
        for (WakeUp.Target target : targets) {
            for (String one : partitions) {
                dispatch(one, target);
            }
        }
    }

    private static void dispatch(String partition, WakeUp.Target target) {
        int colon = partition.indexOf(':');
        try {
            target.wake(
                    Integer.parseInt(partition, 0, Math.max(colon, 0), 10),
                    Integer.parseInt(partition, colon + 1, partition.length(), 10));
        } catch (NumberFormatException e) {
            target.wakeAll();
        }
    }
}
