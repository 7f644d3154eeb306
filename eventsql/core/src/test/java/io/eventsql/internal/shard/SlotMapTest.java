package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.sql.ShardIdentity;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Four slots, of shards 0 and 1; slots 2 and 3 move to shard 2. */
class SlotMapTest {
    private static final UUID CLUSTER = UUID.randomUUID();
    private static final List<String> NAMES = List.of("a", "b", "c");
    private static final List<UUID> IDS = List.of(UUID.randomUUID(), UUID.randomUUID(), UUID.randomUUID());
    private static final int[] BEFORE = {0, 1, 0, 1};
    private static final int[] AFTER = {0, 1, 2, 2};

    private static ShardIdentity before(int number) {
        return new ShardIdentity(
                CLUSTER, number, NAMES.get(number), NAMES, IDS, BEFORE, 1, null, ShardIdentity.Unused.NONE);
    }

    private static ShardIdentity closed(int number) {
        return new ShardIdentity(
                CLUSTER, number, NAMES.get(number), NAMES, IDS, AFTER, 2, BEFORE, ShardIdentity.Unused.NONE);
    }

    private static ShardIdentity finished(int number) {
        return new ShardIdentity(
                CLUSTER, number, NAMES.get(number), NAMES, IDS, AFTER, 2, null, ShardIdentity.Unused.NONE);
    }

    private static List<Integer> owners(ShardIdentity... known) {
        SlotMap map = SlotMap.of(List.of(known), 1, Map.of());
        return List.of(map.owner(0), map.owner(1), map.owner(2), map.owner(3));
    }

    @Test
    void of_oneGiverHasClosed_onlyItsSlotsHaveMoved() {
        assertThat(owners(before(0), before(1), before(2))).containsExactly(0, 1, 0, 1);
        assertThat(owners(closed(0), before(1), before(2))).containsExactly(0, 1, 2, 1);
        assertThat(owners(before(0), closed(1), before(2))).containsExactly(0, 1, 0, 2);
        assertThat(owners(closed(0), closed(1), before(2))).containsExactly(0, 1, 2, 2);
    }

    @Test
    void of_otherGiverIsUnavailable_itsSlotsHaveNotMoved() {
        assertThat(owners(closed(0))).containsExactly(0, 1, 2, 1);
    }

    @Test
    void of_oneShardKnowsThatAllHaveClosed_allSlotsHaveMoved() {
        assertThat(owners(before(0), finished(2))).containsExactly(0, 1, 2, 2);
        assertThat(owners(closed(0), closed(1), finished(2))).containsExactly(0, 1, 2, 2);
    }

    @Test
    void switched_oneShard_othersStay() {
        SlotMap before = SlotMap.of(List.of(before(0)), 1, Map.of());
        SlotMap after = SlotMap.of(List.of(finished(0)), 2, Map.of());
        SlotMap mixed = before.switched(1, after, 3);
        assertThat(List.of(mixed.owner(2), mixed.owner(3))).containsExactly(0, 2);
        assertThat(before.loses(0, after)).isTrue();
        assertThat(before.loses(2, after)).isFalse();
        assertThat(mixed.hasSlots(2)).isTrue();
        assertThat(before.hasSlots(2)).isFalse();
    }

    private static List<Integer> ownersOf(String stream, SlotMap map) {
        SlotMap own = map.of(stream);
        return List.of(own.owner(0), own.owner(1), own.owner(2), own.owner(3));
    }

    @Test
    void of_stationaryStream_keepsItsSlots() {
        Map<String, SlotMap> kept = Map.of("stays", SlotMap.kept(BEFORE));
        SlotMap before = SlotMap.of(List.of(before(0)), 1, kept);
        SlotMap after = SlotMap.of(List.of(finished(0)), 2, kept);
        assertThat(ownersOf("stays", after)).containsExactly(0, 1, 0, 1);
        assertThat(ownersOf("moves", after)).containsExactly(0, 1, 2, 2);
        assertThat(after.of("stays").hasSlots(2)).isFalse();
        assertThat(ownersOf("stays", before.switched(1, after, 3))).containsExactly(0, 1, 0, 1);
        assertThat(before.sameOwners(after)).isFalse();
    }

    /** A process has followed the slots, and reads then that the stream stays: first the calls that wait at shard 2 move back. */
    @Test
    void switched_streamTurnsOutToStay_callsOfTheShardMoveFirst() {
        SlotMap moved = SlotMap.of(List.of(finished(0)), 1, Map.of());
        SlotMap known = moved.with("stays", SlotMap.kept(BEFORE), 2);
        assertThat(moved.sameOwners(known)).isFalse();
        assertThat(moved.loses(2, known)).isTrue();
        assertThat(moved.loses(0, known)).isFalse();
        assertThat(ownersOf("stays", moved.switched(0, known, 3))).containsExactly(0, 1, 2, 2);
        SlotMap switched = moved.switched(2, known, 3);
        assertThat(ownersOf("stays", switched)).containsExactly(0, 1, 0, 1);
        assertThat(ownersOf("moves", switched)).containsExactly(0, 1, 2, 2);
        assertThat(switched.sameOwners(known)).isTrue();
    }

    @Test
    void sameCluster_giverWentBackToBeforeTheMove_isRejected() {
        assertThat(finished(2).sameCluster(before(0))).isFalse();
        assertThat(before(0).sameCluster(finished(2))).isFalse();
        assertThat(finished(0).sameCluster(before(2)))
                .as("a receiver that was not told yet")
                .isTrue();
        assertThat(closed(0).sameCluster(before(1))).isTrue();
    }
}
