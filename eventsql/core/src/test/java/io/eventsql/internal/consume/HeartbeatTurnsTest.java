package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class HeartbeatTurnsTest {
    private static final long INTERVAL = 3_000_000_000L;
    /** Nano time has any sign. */
    private static final long START = -INTERVAL * 9 / 2;

    private final HeartbeatTurns<Integer> turns = new HeartbeatTurns<>(INTERVAL);

    private static List<Integer> members(int count) {
        return IntStream.range(0, count).boxed().toList();
    }

    /** Sends heartbeats at once; returns the members of each. */
    private List<List<Integer>> sendAllDue(List<Integer> members, long now) {
        List<List<Integer>> sent = new ArrayList<>();
        do {
            List<Integer> turn = turns.next(members, now);
            turns.sent(turn, members, now);
            sent.add(turn);
        } while (turns.nanosToNext(members, now) <= 0);
        return sent;
    }

    @Test
    void next_few_areTogetherWhenOneIsDue() {
        List<Integer> members = members(HeartbeatTurns.MEMBERS_MAX);
        assertThat(sendAllDue(members, START)).containsExactly(members);
        assertThat(turns.nanosToNext(members, START)).isEqualTo(INTERVAL);
        turns.requestWithin(3, 5, START);
        turns.requestWithin(3, 7, START);
        assertThat(turns.nanosToNext(members, START)).isEqualTo(5);
        assertThat(turns.next(members, START + 5)).isEqualTo(members);
    }

    @Test
    void next_many_haveTheirTurnsSpreadOverTheInterval() {
        List<Integer> members = members(1_000);
        assertThat(sendAllDue(members, START))
                .hasSize(10)
                .allSatisfy(turn -> assertThat(turn).hasSize(HeartbeatTurns.MEMBERS_MAX));
        Map<Integer, Long> last = new HashMap<>();
        members.forEach(member -> last.put(member, START));
        int heartbeats = 0;
        for (long now = START + turns.nanosToNext(members, START);
                now - START < 10 * INTERVAL;
                now += turns.nanosToNext(members, now)) {
            List<Integer> turn = turns.next(members, now);
            for (Integer member : turn) {
                assertThat(now - last.put(member, now))
                        .as("since the last turn")
                        .isLessThanOrEqualTo(INTERVAL);
            }
            turns.sent(turn, members, now);
            assertThat(turn).hasSize(50);
            heartbeats++;
        }
        assertThat(heartbeats).isBetween(190, 210);
    }

    @Test
    void request_many_theyHaveTheirTurnAtOnce() {
        List<Integer> members = members(500);
        sendAllDue(members, START);
        long now = START + INTERVAL / 2;
        sendAllDue(members, now);
        turns.request(List.of(7, 400), now);
        turns.requestWithin(8, 0, now);
        assertThat(turns.nanosToNext(members, now)).isZero();
        assertThat(turns.next(members, now)).containsExactly(7, 8, 400);
        turns.request(members, now);
        assertThat(sendAllDue(members, now).stream().mapToInt(List::size).sum()).isGreaterThanOrEqualTo(500);
    }

    @Test
    void next_notSent_isTheirTurnAgain() {
        List<Integer> members = members(150);
        List<Integer> turn = turns.next(members, START);
        assertThat(turns.next(members, START + 100)).isEqualTo(turn);
        turns.sent(turn, members, START + 100);
        assertThat(turns.next(members, START + 100)).isEqualTo(members.subList(100, 150));
    }

    @Test
    void remove_turn_isNoLongerWaitedFor() {
        List<Integer> members = members(2);
        turns.request(members, START);
        turns.remove(0);
        turns.remove(1);
        assertThat(turns.nanosToNext(members, START)).isEqualTo(INTERVAL);
    }
}
