package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.reader.PageRequest;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StateSerializersTest {
    private static final StreamPartition PARTITION = new StreamPartition("orders.ä", 2, 7);
    private static final PartitionSplit NEW = new PartitionSplit(PARTITION, ReadPosition.at(0), PageRequest.UNBOUNDED);
    private static final PartitionSplit READ = new PartitionSplit(
            PARTITION, new ReadPosition(5, "incarnation", 4, Instant.parse("2026-01-01T00:00:00.123456Z")), 9);

    @Test
    void split_serialized_isTheSame() throws IOException {
        StateSerializers.OfSplit serializer = new StateSerializers.OfSplit();
        for (PartitionSplit split : List.of(NEW, READ)) {
            assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(split)))
                    .isEqualTo(split);
        }
    }

    @Test
    void enumeratorState_serialized_isTheSame() throws IOException {
        StateSerializers.OfEnumerator serializer = new StateSerializers.OfEnumerator();
        EnumeratorState state =
                new EnumeratorState(true, Set.of(PARTITION, new StreamPartition("orders.ä", 0, 0)), List.of(READ, NEW));
        assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(state)))
                .isEqualTo(state);
    }

    @Test
    void state_ofLaterVersion_isRejected() {
        assertThatIOException()
                .isThrownBy(() -> new StateSerializers.OfSplit().deserialize(2, new byte[0]))
                .withMessageContaining("version 2");
    }
}
