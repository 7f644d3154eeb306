package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.StreamSpec;
import io.eventsql.reader.EventReader;
import io.eventsql.reader.PageRequest;
import io.eventsql.reader.PartitionRange;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPosition;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsAddition;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Fetching from two shards of which one is unavailable. */
@Timeout(120)
class PartitionSplitReaderIT {
    private static final String DOWN = "jdbc:postgresql://127.0.0.1:1/none";

    @Test
    void fetch_oneShardUnavailable_readsTheOtherUntilTheTimeout() throws Exception {
        try (FlinkFixture fixture = new FlinkFixture()) {
            fixture.eventSql.createStream(StreamSpec.of("half").withPartitions(2));
            fixture.publish("half", 0, 100);
            List<PartitionRange> ranges;
            try (EventReader reader = fixture.settings("half", StreamPosition.EARLIEST, null, fixture.urls())
                    .openReader()) {
                ranges = reader.ranges("half");
            }
            int up = Integer.parseInt(
                    fixture.query("SELECT shard_number FROM eventsql.shard").get(0));
            SourceSettings settings = fixture.settings(
                    "half",
                    StreamPosition.EARLIEST,
                    null,
                    List.of(DOWN, fixture.urls().get(0)));
            AtomicLong nanoTime = new AtomicLong();
            PartitionSplitReader reader = new PartitionSplitReader(
                    settings,
                    new ReaderMetrics(UnregisteredMetricsGroup.createSourceReaderMetricGroup()),
                    nanoTime::get);
            try {
                reader.handleSplitsChanges(new SplitsAddition<>(ranges.stream()
                        .map(range -> new PartitionSplit(range.partition(), ReadPosition.at(0), PageRequest.UNBOUNDED))
                        .toList()));
                assertThat(count(reader.fetch()))
                        .isEqualTo(ranges.stream()
                                .filter(range -> range.partition().shard() == up)
                                .mapToLong(PartitionRange::head)
                                .sum())
                        .isPositive();
                nanoTime.addAndGet(settings.failureTimeout().toNanos() - 1);
                assertThat(count(reader.fetch())).isZero();
                nanoTime.addAndGet(TimeUnit.MINUTES.toNanos(1));
                assertThatIOException()
                        .isThrownBy(reader::fetch)
                        .withMessageContaining("Shard " + (1 - up))
                        .withMessageContaining("was unavailable");
            } finally {
                reader.close();
            }
        }
    }

    private static long count(RecordsWithSplitIds<FetchedEvent> records) {
        long count = 0;
        while (records.nextSplit() != null) {
            while (records.nextRecordFromSplit() != null) {
                count++;
            }
        }
        return count;
    }
}
