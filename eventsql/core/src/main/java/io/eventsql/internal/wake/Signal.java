package io.eventsql.internal.wake;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * The payload of a wake-up signal, its sender followed by the changes: {@code <sender> <stream id>:<partition>,…}, with
 * {@code c<consumer id>} for a consumer, or {@code <sender> *} if anything may have changed.
 */
final class Signal {
    /** More changes are sent as {@value #ALL}, because NOTIFY's payload is limited to less than 8,000 bytes. */
    private static final int CHANGES_MAX = 300;

    private static final String ALL = "*";
    private static final char CONSUMER_PREFIX = 'c';

    private Signal() {}

    /** A change: new events in a partition, or another state or other members of a consumer. */
    record Change(int id, int partition) {
        private static final int CONSUMER = -1;

        /** No change: by this the sender finds out whether it receives signals. No consumer has the id 0. */
        static Change none() {
            return ofConsumer(0);
        }

        static Change ofConsumer(int consumerId) {
            return new Change(consumerId, CONSUMER);
        }

        boolean isOfConsumer() {
            return partition == CONSUMER;
        }

        private String encode() {
            return isOfConsumer() ? CONSUMER_PREFIX + Integer.toString(id) : id + ":" + partition;
        }
    }

    static String encode(String sender, Collection<Change> changes) {
        if (changes.size() > CHANGES_MAX) {
            return sender + " " + ALL;
        }
        StringBuilder text = new StringBuilder(sender);
        char separator = ' ';
        for (Change change : changes) {
            text.append(separator).append(change.encode());
            separator = ',';
        }
        return text.toString();
    }

    static boolean isFrom(String sender, String text) {
        return text.startsWith(sender + " ");
    }

    /** Returns the changes; an empty list if anything may have changed, or if the signal is malformed. */
    static List<Change> decode(String text) {
        List<Change> changes = new ArrayList<>();
        for (String change : text.substring(text.indexOf(' ') + 1).split(",", -1)) {
            int colon = change.indexOf(':');
            try {
                if (change.charAt(0) == CONSUMER_PREFIX) {
                    changes.add(Change.ofConsumer(Integer.parseInt(change, 1, change.length(), 10)));
                } else {
                    changes.add(new Change(
                            Integer.parseInt(change, 0, Math.max(colon, 0), 10),
                            Integer.parseInt(change, colon + 1, change.length(), 10)));
                }
            } catch (NumberFormatException | IndexOutOfBoundsException e) {
                return List.of();
            }
        }
        return changes;
    }
}
