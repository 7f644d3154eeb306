package io.eventsql.internal.consume;

import static io.eventsql.internal.consume.Fixtures.assignment;
import static io.eventsql.internal.consume.Fixtures.page;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import org.junit.jupiter.api.Test;

class AssignmentTest {
    private final Assignment assignment = assignment(10);

    @Test
    void acceptPage_handlerIsIdle_startsIt() {
        assignment.beginFetch();

        assertThat(assignment.acceptPage(page(10, 2))).isTrue();
        assertThat(assignment.isHandling()).isTrue();
        assertThat(assignment.fetchedOffset()).isEqualTo(12);
    }

    @Test
    void acceptPage_handlerIsRunning_leavesThePageToIt() {
        assignment.acceptPage(page(10, 2));
        assertThat(assignment.takePage()).hasSize(2);

        assertThat(assignment.acceptPage(page(12, 1))).isFalse();
        assertThat(assignment.endHandling()).isFalse();
        assertThat(assignment.takePage()).hasSize(1);
        assertThat(assignment.endHandling()).isTrue();
    }

    @Test
    void acceptPage_beginsElsewhere_isRefused() {
        assertThat(assignment.acceptPage(page(11, 2))).isFalse();
        assertThat(assignment.fetchedOffset()).isEqualTo(10);
    }

    @Test
    void acceptPage_isFull_mayHaveMore() {
        assignment.beginFetch();
        assignment.acceptPage(page(10, Fixtures.PAGE_EVENTS));
        assignment.takePage();

        assertThat(assignment.wantsPage()).isTrue();
    }

    @Test
    void recordHandled_inAnotherOrder_advancesOnlyPastWhatIsHandled() {
        assignment.recordHandled(11, 12);
        assignment.recordHandled(12, 13);
        assertThat(assignment.uncommitted()).isNull();

        assignment.recordHandled(10, 11);

        assertThat(assignment.progress().toOffset()).isEqualTo(13);
        assertThat(assignment.progress().fromOffset()).isEqualTo(10);
    }

    @Test
    void recordCommitted_olderOffset_changesNothing() {
        assignment.recordHandled(10, 15);
        assignment.recordCommitted(15);

        assignment.recordCommitted(12);

        assertThat(assignment.committedOffset()).isEqualTo(15);
    }

    @Test
    void drain_pageWaits_dropsItAndStillCommits() {
        assignment.acceptPage(page(10, 2));
        assignment.recordHandled(10, 11);

        assignment.drain();

        assertThat(assignment.isDraining()).isTrue();
        assertThat(assignment.takePage()).isNull();
        assertThat(assignment.endHandling()).isTrue();
        assertThat(assignment.uncommitted()).isNotNull();
    }

    @Test
    void end_whateverTheState_commitsNothing() {
        assignment.recordHandled(10, 11);
        assignment.drain();

        assignment.end();

        assertThat(assignment.uncommitted()).isNull();
        assertThat(assignment.isLeaseValid()).isFalse();
        assertThat(assignment.isDraining()).isFalse();
    }

    @Test
    void beginStop_isTrueOnce() {
        assertThat(assignment.beginStop()).isTrue();
        assertThat(assignment.beginStop()).isFalse();
        assertThat(assignment.isEnding()).isTrue();
    }

    @Test
    void beginStop_hasEnded_isRefused() {
        assignment.end();

        assertThat(assignment.beginStop()).isFalse();
    }

    @Test
    void drain_whileStopping_waitsForTheStop() {
        assignment.drain();
        assignment.beginStop();
        assignment.drain();
        assertThat(assignment.isDraining()).isFalse();

        assignment.abortStop();

        assertThat(assignment.isDraining()).isTrue();
    }

    @Test
    void abortStop_hasEnded_staysEnded() {
        assignment.beginStop();
        assignment.end();

        assignment.abortStop();

        assertThat(assignment.hasEnded()).isTrue();
    }

    @Test
    void awaitTurn_isNotHandling() {
        assignment.acceptPage(page(10, 2));

        assignment.awaitTurn();
        assertThat(assignment.isHandling()).isFalse();
        assertThat(assignment.requestRedrive()).isFalse(); // the thread that waits will do it

        assignment.beginTurn();
        assertThat(assignment.isHandling()).isTrue();
    }

    @Test
    void requestRedrive_handlerIsIdle_startsItAndIsTakenOnce() {
        assertThat(assignment.requestRedrive()).isTrue();
        assertThat(assignment.takeRedriveRequest()).isTrue();
        assertThat(assignment.takeRedriveRequest()).isFalse();
    }

    @Test
    void isHandling_eventsInLanes_untilTheyAreFinished() {
        assignment.keyQueues().add(Fixtures.event(10, "a"));
        assertThat(assignment.isHandling()).isTrue();

        assignment.keyQueues().finish();
        assertThat(assignment.isHandling()).isFalse();
    }

    @Test
    void isLeaseValid_expiredAndRenewed() {
        Assignment expired =
                new Assignment(Fixtures.membership(), Fixtures.taken(0, 0), Set.of(), System.nanoTime() - 1);
        assertThat(expired.isLeaseValid()).isFalse();

        expired.renewLease(Fixtures.leaseEnd());

        assertThat(expired.isLeaseValid()).isTrue();
    }
}
