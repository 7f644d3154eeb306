package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.StationaryStreams.Change;
import io.eventsql.internal.sql.StreamTable;
import io.eventsql.internal.sql.StreamTable.StoredSlots;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Two slots. The stream is created with the slot map of version 1, and created anew with that of version 2. */
class StationaryStreamsTest {
    private static final String STREAM = "stays";
    private static final StoredSlots FIRST = slots(1, 0, 1);
    private static final StoredSlots SECOND = slots(2, 2, 1);
    private static final int ID = 5;
    private static final int OTHER_ID = 6;

    private final StationaryStreams streams = new StationaryStreams();

    private static StoredSlots slots(int version, int... owners) {
        return new StoredSlots(
                version, Arrays.stream(owners).mapToObj(owner -> (short) owner).toArray(Short[]::new), null);
    }

    private Change learn(int shard, int id, StoredSlots ofShard, @Nullable StoredSlots kept) {
        return learn(shard, id, ofShard, kept, false);
    }

    private Change learn(int shard, int id, StoredSlots ofShard, @Nullable StoredSlots kept, boolean isSpare) {
        return streams.learn(shard, new StreamTable.Row(id, StreamSpec.of(STREAM), 1, null, ofShard, kept, isSpare));
    }

    private @Nullable Integer ownerOfSlot0() {
        SlotMap slots = streams.find(STREAM);
        return slots == null ? null : slots.owner(0);
    }

    @Test
    void learn_shardDoesNotKnowYetThatItStays_stays() {
        assertThat(learn(0, ID, FIRST, FIRST)).isEqualTo(Change.FIRST);
        assertThat(learn(1, ID, FIRST, null)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isEqualTo(0);
    }

    @Test
    void learn_spareShardWasAddedAfterAMove_stays() {
        assertThat(learn(3, ID, SECOND, null, true)).isEqualTo(Change.NONE);
        assertThat(learn(0, ID, SECOND, FIRST)).isEqualTo(Change.OTHER);
        assertThat(learn(3, ID, SECOND, null, true)).isEqualTo(Change.NONE);
        assertThat(learn(3, OTHER_ID, SECOND, null, true)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isEqualTo(0);
    }

    @Test
    void learn_createdAnewAndReadOnAnotherShard_hasItsSlots() {
        learn(0, ID, FIRST, FIRST);
        assertThat(learn(1, ID, SECOND, SECOND)).isEqualTo(Change.OTHER);
        assertThat(ownerOfSlot0()).isEqualTo(2);
        assertThat(learn(0, OTHER_ID, SECOND, SECOND)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isEqualTo(2);
    }

    @Test
    void learn_formerStreamWasReadBefore_isIgnored() {
        learn(1, ID, SECOND, SECOND);
        assertThat(learn(0, ID, FIRST, FIRST)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isEqualTo(2);
        assertThat(learn(0, OTHER_ID, SECOND, SECOND)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isEqualTo(2);
    }

    @Test
    void learn_createdAnewAsOneThatMoves_moves() {
        learn(0, ID, FIRST, FIRST);
        assertThat(learn(1, ID, SECOND, null)).isEqualTo(Change.OTHER);
        assertThat(ownerOfSlot0()).isNull();
        assertThat(learn(0, OTHER_ID, SECOND, null)).isEqualTo(Change.NONE);
        assertThat(ownerOfSlot0()).isNull();
    }

    @Test
    void learn_sameShardHasAnotherStream_forgetsTheFormer() {
        learn(0, ID, FIRST, FIRST);
        assertThat(learn(0, OTHER_ID, FIRST, null)).isEqualTo(Change.OTHER);
        assertThat(ownerOfSlot0()).isNull();
    }
}
