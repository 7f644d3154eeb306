package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class KeyShareTest {

    @Test
    void split_eachKeyBelongsToExactlyOneCaller() {
        List<String> keys = KeyShare.keysOf(3, 1_000);
        List<String> dealt = new ArrayList<>();

        for (KeyShare share : KeyShare.split(keys, 7)) {
            // 143 is the largest share. Rotation must stay within it.
            Set<String> ofCaller = new HashSet<>();
            IntStream.range(0, 2 * 143).forEach(i -> ofCaller.add(share.nextKey()));
            assertThat(ofCaller.size()).isBetween(142, 143);
            dealt.addAll(ofCaller);
        }

        assertThat(dealt).containsExactlyInAnyOrderElementsOf(keys);
    }

    @Test
    void keysOf_otherRunners_areDisjoint() {
        assertThat(KeyShare.keysOf(1, 100)).doesNotContainAnyElementsOf(KeyShare.keysOf(11, 100));
    }

    @Test
    void split_fewerKeysThanCallers_isRejected() {
        assertThatThrownBy(() -> KeyShare.split(KeyShare.keysOf(0, 3), 4))
                .hasMessage("3 keys are too few for 4 callers");
    }

    @Test
    void nextKey_withoutKeys_isNull() {
        assertThat(KeyShare.withoutKeys().nextKey()).isNull();
    }
}
