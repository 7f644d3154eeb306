package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Creating and listing streams. */
abstract class StreamsContract extends Contract {
    StreamsContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void createStream_existsWithSameValues_doesNothing() {
        StreamSpec spec =
                StreamSpec.of(newName()).withPartitions(2).withSegmentSize(200).asJson();
        eventSql.createStream(stored(spec));
        publisher.publish(spec.name(), Event.ofText("1"));
        eventSql.createStream(stored(spec));
        cluster.open().createStream(stored(spec));
        assertThat(readAll(spec.name())).hasSize(1);
        assertThat(eventSql.streams()).contains(stored(spec));
    }

    @Test
    void createStream_existsWithOtherValues_keepsThemAndRejectsOtherPartitions() {
        StreamSpec spec = StreamSpec.of(newName()).withPartitions(2).withSegmentSize(200);
        eventSql.createStream(stored(spec));
        for (EventSql instance : List.of(eventSql, cluster.open())) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> instance.createStream(stored(spec.withPartitions(3))))
                    .withMessageContaining(spec.name())
                    .satisfies(e -> assertThat(e.field()).isEqualTo("stream.partitions"));
            instance.createStream(stored(spec.withSegmentSize(300)));
            instance.createStream(stored(spec.asJson()));
            assertThat(instance.streams()).contains(stored(spec));
        }
    }

    @Test
    void createStream_concurrently_createsOneStream() throws Exception {
        List<EventSql> instances = List.of(eventSql, cluster.open(), cluster.open());
        StreamSpec spec = StreamSpec.of(newName()).withPartitions(2);
        CountDownLatch start = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<?>> done = new ArrayList<>();
            for (EventSql instance : instances) {
                done.add(executor.submit(() -> {
                    start.await();
                    instance.createStream(stored(spec));
                    return instance.publisher().publish(spec.name(), Event.ofText("x"));
                }));
            }
            start.countDown();
            for (Future<?> one : done) {
                one.get(120, TimeUnit.SECONDS);
            }
        }
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.stream WHERE name = '" + spec.name() + "'"))
                .isEqualTo(shards);
        assertThat(readAll(spec.name())).hasSize(3);
    }

    @Test
    void streams_createdByAnotherInstance_areListedByName() {
        String b = newStream(StreamSpec.of("zz_" + newName()).withPartitions(1));
        String a = newStream(StreamSpec.of("aa_" + newName()).withPartitions(1));
        List<String> names =
                cluster.open().streams().stream().map(StreamSpec::name).toList();
        assertThat(names).contains(a, b).isSorted();
    }
}
