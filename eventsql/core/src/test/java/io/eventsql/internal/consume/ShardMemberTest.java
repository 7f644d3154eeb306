package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ShardMemberTest {
    private final List<String> revoked = new ArrayList<>();
    private final Listeners listeners = new Listeners(List.of(new ConsumerListener() {
        @Override
        public void partitionRevoked(ConsumerPartition partition, Reason reason) {
            revoked.add(partition.partition() + " " + reason);
        }
    }));
    private final ShardMember member = Fixtures.member(listeners, 2, 0, 1);

    private Assignment assignment(int partition) {
        return member.assignment(partition).orElseThrow();
    }

    private void startHandler(int partition) {
        assignment(partition).acceptPage(Fixtures.page(0, 1));
    }

    @Test
    void add_keepsThePartitionsInOrder() {
        assertThat(member.assignments()).extracting(Assignment::partition).containsExactly(0, 1, 2);
    }

    @Test
    void add_closed_isRefused() {
        member.close();

        assertThat(member.add(List.of(Fixtures.taken(3, 0)), Map.of(), Fixtures.leaseEnd()))
                .isFalse();
    }

    @Test
    void rotateAssignments_beginsWithEachInTurn() {
        assertThat(member.rotateAssignments().getFirst().partition()).isZero();
        assertThat(member.rotateAssignments().getFirst().partition()).isEqualTo(1);
        assertThat(member.rotateAssignments()).extracting(Assignment::partition).containsExactly(2, 0, 1);
    }

    @Test
    void remove_twice_isReportedOnce() {
        Assignment lost = assignment(1);

        member.remove(lost, ConsumerListener.Reason.LOST);
        member.remove(lost, ConsumerListener.Reason.RELEASED);

        assertThat(revoked).containsExactly("1 LOST");
        assertThat(lost.hasEnded()).isTrue();
    }

    @Test
    void remove_handlerIsRunning_isNotTakenAgainUntilItEnds() {
        startHandler(1);
        Assignment lost = assignment(1);
        member.remove(lost, ConsumerListener.Reason.LOST);
        assertThat(member.notToTake()).containsExactly(1, 0, 2);

        lost.endHandling();

        assertThat(member.notToTake()).containsExactly(0, 2);
    }

    @Test
    void heartbeat_closed_asksForNothingAndKeepsItsLeases() {
        member.close();

        assertThat(member.heartbeat().maxPartitions()).isZero();
        assertThat(member.heartbeat().held()).containsExactly(0, 1, 2);
    }

    @Test
    void recordAnswer_isTrueForTheFirstAlone() {
        assertThat(member.recordAnswer()).isTrue();
        assertThat(member.recordAnswer()).isFalse();
    }

    @Test
    void beginLeave_notClosed_stays() {
        assertThat(member.beginLeave()).isFalse();
        member.leaveNow();
        assertThat(member.beginLeave()).isFalse();
    }

    @Test
    void beginLeave_closed_waitsForHandlers() {
        startHandler(1);
        member.close();
        assertThat(member.beginLeave()).isFalse();

        assignment(1).endHandling();

        assertThat(member.beginLeave()).isTrue();
        assertThat(member.haveHandlersEnded()).isTrue();
    }

    @Test
    void leaveNow_handlerIsRunning_doesNotWaitForIt() {
        startHandler(1);
        member.close();

        member.leaveNow();

        assertThat(member.beginLeave()).isTrue();
        assertThat(member.haveHandlersEnded()).isFalse();
        assertThat(member.allowLastAttempt()).isFalse();
    }

    @Test
    void allowLastAttempt_isTrueOnce() {
        member.close();
        member.beginLeave();

        assertThat(member.allowLastAttempt()).isTrue();
        assertThat(member.beginLeave()).isTrue();
        assertThat(member.allowLastAttempt()).isFalse();
    }

    @Test
    void markLeft_releasesThoseWhoWait() throws InterruptedException {
        assertThat(member.awaitLeft(System.nanoTime())).isFalse();

        member.markLeft();

        assertThat(member.awaitLeft(System.nanoTime())).isTrue();
        assertThat(member.isClosed()).isTrue();
    }
}
