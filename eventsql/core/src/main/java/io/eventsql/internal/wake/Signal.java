package io.eventsql.internal.wake;

import java.util.Collection;

/**
 * The text of a wake-up signal: who sends it, and for which partitions there is something new. {@code
 * <sender> <stream id>:<partition>,…}, {@code c<consumer id>} for a consumer, or {@code <sender> *} for all.
 */
final class Signal {
    /** More are not listed one by one: NOTIFY's payload has less than 8,000 bytes. */
    private static final int PARTITIONS_LISTED_MAX = 300;

    private static final String ALL = "*";
    private static final char CONSUMER_PREFIX = 'c';

    private Signal() {}

    /** What has changed: a partition has something new, or a consumer its members or its state. */
    record News(int id, int partition) {
        private static final int CONSUMER = -1;

        static News ofConsumer(int consumerId) {
            return new News(consumerId, CONSUMER);
        }

        private String text() {
            return partition == CONSUMER ? CONSUMER_PREFIX + Integer.toString(id) : id + ":" + partition;
        }
    }

    static String encode(String sender, Collection<News> news) {
        if (news.size() > PARTITIONS_LISTED_MAX) {
            return sender + " " + ALL;
        }
        StringBuilder text = new StringBuilder(sender);
        char separator = ' ';
        for (News one : news) {
            text.append(separator).append(one.text());
            separator = ',';
        }
        return text.toString();
    }

    /** Tells the targets, unless the signal is this process's own. What is no signal of ours wakes everything. */
    static void dispatch(String text, String self, Iterable<WakeUpTarget> targets) {
        int space = text.indexOf(' ');
        if (space >= 0 && text.substring(0, space).equals(self)) {
            return;
        }
        String[] partitions = text.substring(space + 1).split(",", -1);
        for (WakeUpTarget target : targets) {
            for (String one : partitions) {
                dispatch(one, target);
            }
        }
    }

    private static void dispatch(String partition, WakeUpTarget target) {
        int colon = partition.indexOf(':');
        try {
            if (partition.charAt(0) == CONSUMER_PREFIX) {
                target.consumerChanged(Integer.parseInt(partition, 1, partition.length(), 10));
                return;
            }
            target.wake(
                    Integer.parseInt(partition, 0, Math.max(colon, 0), 10),
                    Integer.parseInt(partition, colon + 1, partition.length(), 10));
        } catch (NumberFormatException | IndexOutOfBoundsException e) {
            target.wakeAll();
        }
    }
}
