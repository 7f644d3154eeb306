package io.eventsql.internal.consume;

import static io.eventsql.internal.consume.Fixtures.PAGE_EVENTS;
import static io.eventsql.internal.consume.Fixtures.assignment;
import static io.eventsql.internal.consume.Fixtures.page;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.sql.FetchedPage;
import java.util.Set;
import org.junit.jupiter.api.Test;

class AssignmentTest {
    private final Assignment assignment = assignment(10);

    @Test
    void acceptPage_handlerIsIdle_startsIt() {
        assignment.beginFetch(PAGE_EVENTS);

        assertThat(assignment.acceptPage(page(10, 2))).isTrue();
        assertThat(assignment.isHandling()).isTrue();
        assertThat(assignment.fetchedOffset()).isEqualTo(12);
    }

    @Test
    void acceptPage_handlerIsRunning_leavesThePageToIt() {
        assignment.acceptPage(page(10, 2));
        assertThat(assignment.takePage().events()).hasSize(2);

        assertThat(assignment.acceptPage(page(12, 1))).isFalse();
        assertThat(assignment.endHandling()).isFalse();
        assertThat(assignment.takePage().events()).hasSize(1);
        assertThat(assignment.endHandling()).isTrue();
    }

    @Test
    void acceptPage_beginsElsewhere_isRefused() {
        assertThat(assignment.acceptPage(page(11, 2))).isFalse();
        assertThat(assignment.fetchedOffset()).isEqualTo(10);
    }

    @Test
    void acceptPage_gapInside_fetchesFromItsEnd() {
        assignment.beginFetch(PAGE_EVENTS);

        assignment.acceptPage(page(10, 20, 10, 11, 17, 19));

        assertThat(assignment.fetchedOffset()).isEqualTo(20);
    }

    @Test
    void acceptPage_beginsWithAGap_isKeptUntilTheGapIsAccepted() {
        assignment.beginFetch(PAGE_EVENTS);

        assertThat(assignment.acceptPage(page(10, 20, 15, 16))).isFalse();
        assertThat(assignment.hasEmptyRange()).isTrue();
        assertThat(assignment.fetchedOffset()).isEqualTo(10);
        assignment.wake();
        assertThat(assignment.wantsPage())
                .as("fetched again while the heads are read")
                .isFalse();

        assertThat(assignment.acceptEmptyRange()).isTrue();
        assertThat(assignment.hasEmptyRange()).isFalse();
        assertThat(assignment.fetchedOffset()).isEqualTo(15);
        FetchedPage missing = assignment.takePage();
        assertThat(missing.firstOffset()).isEqualTo(10);
        assertThat(missing.nextOffset()).isEqualTo(15);
        assertThat(missing.events()).isEmpty();
        assertThat(assignment.wantsPage()).isTrue();
    }

    @Test
    void acceptEmptyRange_isEnding_isRefused() {
        assignment.beginFetch(PAGE_EVENTS);
        assignment.acceptPage(page(10, 20));
        assignment.drain();

        assertThat(assignment.acceptEmptyRange()).isFalse();
    }

    @Test
    void progress_eventsAreMissing_countsOnlyEvents() {
        assignment.recordMissing(12, 15);
        assignment.recordHandled(10, 16);

        assertThat(assignment.progress().toOffset()).isEqualTo(16);
        assertThat(assignment.progress().events()).isEqualTo(3);

        assignment.recordCommitted(16);
        assignment.recordHandled(16, 20);

        assertThat(assignment.progress().events()).isEqualTo(4);
    }

    @Test
    void budget_whateverEndsAPage_isReleased() {
        FetchBudget budget = Fixtures.budget();
        Assignment owned =
                new Assignment(Fixtures.membership(), Fixtures.taken(0, 0), Set.of(), Fixtures.leaseEnd(), budget);
        owned.beginFetch(PAGE_EVENTS);
        assertThat(budget.usedBytes()).isPositive();
        owned.abortFetch();
        assertThat(budget.usedBytes()).as("fetch failed").isZero();

        owned.beginFetch(PAGE_EVENTS);
        owned.acceptPage(page(0, 0));
        assertThat(budget.usedBytes()).as("page is empty").isZero();

        owned.wake();
        owned.beginFetch(PAGE_EVENTS);
        owned.acceptPage(page(0, 3));
        assertThat(budget.usedBytes()).as("page waits").isEqualTo(3);
        owned.drain();
        assertThat(budget.usedBytes()).as("partition drains").isZero();

        Assignment lost =
                new Assignment(Fixtures.membership(), Fixtures.taken(0, 0), Set.of(), Fixtures.leaseEnd(), budget);
        lost.beginFetch(PAGE_EVENTS);
        lost.end();
        lost.acceptPage(page(0, 3));
        assertThat(budget.usedBytes()).as("partition ended during the fetch").isZero();
    }

    @Test
    void acceptPage_isFull_mayHaveMore() {
        assignment.beginFetch(PAGE_EVENTS);
        assignment.acceptPage(page(10, Fixtures.PAGE_EVENTS));
        assignment.takePage();

        assertThat(assignment.wantsPage()).isTrue();
    }

    /** A fetch of ten events in pages of four: the next one is wanted from the first page on, and nothing is lost or twice. */
    @Test
    void takePage_fetchHasSeveralPages_areTakenOneByOneWhileTheNextIsFetched() {
        assignment.beginFetch(10);
        assignment.acceptPage(page(10, 10));
        assignment.wake();
        assertThat(assignment.wantsPage()).as("nothing was taken").isFalse();

        assertThat(assignment.takePage().nextOffset()).isEqualTo(14);
        assertThat(assignment.wantsPage()).isTrue();
        assignment.beginFetch(10);
        assertThat(assignment.acceptPage(page(20, 3)))
                .as("the handler is running")
                .isFalse();

        assertThat(assignment.endHandling()).isFalse();
        FetchedPage second = assignment.takePage();
        assertThat(second.firstOffset()).isEqualTo(14);
        assertThat(second.events()).hasSize(4);
        assertThat(assignment.takePage().nextOffset()).isEqualTo(20);
        assertThat(assignment.endHandling()).isFalse();
        assertThat(assignment.takePage().firstOffset()).isEqualTo(20);
        assertThat(assignment.endHandling()).isTrue();
    }

    @Test
    void drain_severalPagesWait_fetchesThemAgainAndReleasesTheirMemory() {
        FetchBudget budget = Fixtures.budget();
        Assignment owned =
                new Assignment(Fixtures.membership(), Fixtures.taken(0, 0), Set.of(), Fixtures.leaseEnd(), budget);
        owned.beginFetch(10);
        owned.acceptPage(page(0, 10));
        FetchedPage first = owned.takePage();
        owned.beginFetch(10);
        owned.acceptPage(page(10, 10));
        assertThat(budget.usedBytes()).isEqualTo(20);

        owned.drain();

        assertThat(owned.fetchedOffset()).isEqualTo(first.nextOffset());
        assertThat(owned.takePage()).isNull();
        owned.releaseBytes(first.bytes());
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void lastTaken_severalPages_isTheLastEventOfThePageThatWasTaken() {
        assignment.beginFetch(10);
        assignment.acceptPage(page(10, 10));

        assignment.takePage();

        assertThat(assignment.lastTaken().offset()).isEqualTo(13);
    }

    @Test
    void fetchEvents_handlerHasNotHandledAnything_isOnePage() {
        assignment.beginFetch(PAGE_EVENTS);
        assignment.acceptPage(page(10, PAGE_EVENTS));
        assignment.takePage();

        assertThat(assignment.fetchEvents()).isEqualTo(PAGE_EVENTS);
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
        Assignment expired = new Assignment(
                Fixtures.membership(), Fixtures.taken(0, 0), Set.of(), System.nanoTime() - 1, Fixtures.budget());
        assertThat(expired.isLeaseValid()).isFalse();

        expired.renewLease(Fixtures.leaseEnd());

        assertThat(expired.isLeaseValid()).isTrue();
    }
}
