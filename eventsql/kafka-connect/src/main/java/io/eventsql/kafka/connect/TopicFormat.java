package io.eventsql.kafka.connect;

import io.eventsql.reader.StreamPartition;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigException;

/** The names of topics, by partition. Immutable. */
final class TopicFormat {
    private static final Pattern PLACEHOLDER = Pattern.compile("\\$\\{([^}]*)}");
    private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");

    private final String format;

    /** @throws ConfigException if it has an unknown placeholder, or characters that a topic cannot have */
    TopicFormat(String name, String format) {
        this.format = format;
        PLACEHOLDER.matcher(format).results().map(found -> found.group(1)).forEach(placeholder -> {
            if (!placeholders(new StreamPartition("s", 0, 0)).containsKey(placeholder)) {
                throw new ConfigException(
                        name, format, "${" + placeholder + "} must be ${stream}, ${shard} or ${partition}");
            }
        });
        String topic = topic(new StreamPartition("s", 0, 0));
        if (!TOPIC.matcher(topic).matches() || topic.matches("\\.{1,2}")) {
            throw new ConfigException(
                    name, format, "A topic has 1 to 249 letters, digits, dots, underscores and hyphens");
        }
    }

    private static Map<String, String> placeholders(StreamPartition partition) {
        return Map.of(
                "stream",
                partition.stream(),
                "shard",
                String.valueOf(partition.shard()),
                "partition",
                String.valueOf(partition.partition()));
    }

    /** Returns how many partitions each topic needs, by name, if records keep the partitions of their events. */
    Map<String, Integer> partitionsNeeded(List<StreamPartition> partitions) {
        Map<String, Integer> needed = new TreeMap<>();
        for (StreamPartition partition : partitions) {
            needed.merge(topic(partition), partition.partition() + 1, Math::max);
        }
        return needed;
    }

    String topic(StreamPartition partition) {
        Map<String, String> values = placeholders(partition);
        return PLACEHOLDER
                .matcher(format)
                .replaceAll(found -> Matcher.quoteReplacement(values.getOrDefault(found.group(1), "")));
    }
}
