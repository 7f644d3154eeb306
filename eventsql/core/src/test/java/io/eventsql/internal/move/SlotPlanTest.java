package io.eventsql.internal.move;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SlotPlanTest {
    private static final int SLOTS = 1_024;

    private static int[] first(int shards) {
        return IntStream.range(0, SLOTS).map(slot -> slot % shards).toArray();
    }

    private static int countMoved(SlotPlan plan) {
        int moved = 0;
        for (int giver : plan.givers()) {
            for (int receiver : plan.receivers()) {
                moved += plan.moving(giver, receiver).size();
            }
        }
        return moved;
    }

    @Test
    void of_shardsJoin_onlyTheirSharesMove() {
        SlotPlan plan = SlotPlan.of(first(3), List.of(0, 1, 2, 3, 4));
        assertThat(plan.givers()).containsExactly(0, 1, 2);
        assertThat(plan.receivers()).containsExactly(3, 4);
        assertThat(countMoved(plan))
                .isEqualTo(plan.ownedAfter(3) + plan.ownedAfter(4))
                .isBetween(408, 410);
    }

    @Test
    void of_shardLeaves_onlyItsSlotsMove() {
        SlotPlan five = SlotPlan.of(first(3), List.of(0, 1, 2, 3, 4));
        SlotPlan plan = SlotPlan.of(five.after(), List.of(0, 1, 2, 4));
        assertThat(plan.givers()).containsExactly(3);
        assertThat(countMoved(plan)).isEqualTo(five.ownedAfter(3));
        assertThat(plan.ownedAfter(3)).isZero();
    }

    @Test
    void of_sameShards_nothingMoves() {
        assertThat(SlotPlan.of(first(3), List.of(2, 1, 0)).isEmpty()).isTrue();
    }

    @Test
    void of_anyShards_sharesAreEqualAndNoShardBothGivesAndReceives() {
        Random random = new Random(20_261_124);
        int[] slots = first(3);
        for (int i = 0; i < 200; i++) {
            Set<Integer> target = new TreeSet<>();
            while (target.isEmpty()) {
                for (int shard = 0; shard < 9; shard++) {
                    if (random.nextBoolean()) {
                        target.add(shard);
                    }
                }
            }
            SlotPlan plan = SlotPlan.of(slots, target);
            assertThat(plan.shards()).isEqualTo(target);
            assertThat(plan.receivers()).doesNotContainAnyElementsOf(plan.givers());
            List<Integer> shares = new ArrayList<>();
            int needed = 0;
            for (int shard : target) {
                shares.add(plan.ownedAfter(shard));
                needed += Math.max(0, plan.ownedAfter(shard) - plan.ownedBefore(shard));
            }
            assertThat(shares).allMatch(share -> share == SLOTS / target.size() || share == SLOTS / target.size() + 1);
            assertThat(countMoved(plan)).as("only what must").isEqualTo(needed);
            slots = plan.after();
        }
    }
}
