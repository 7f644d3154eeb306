package io.eventsql.internal.append;

import io.eventsql.internal.pace.RateInterval;
import java.util.concurrent.TimeUnit;

/**
 * How long a shard's next commit is delayed so that more calls share it, by the longer of two delays. Not thread-safe: guarded
 * by {@link PublishQueue}'s lock.
 *
 * <p>By the load of the database: a commit begins no earlier than {@code 2 × (recent − 2 × fastest)} after the end of the last one, at
 * least 0, at most {@code maxCommitDelay}. {@code recent} is the average duration of the last commits, {@code fastest} the
 * duration of the fastest one within 5 to 10 minutes, which is what a commit takes when the database is idle. A database that
 * responds as fast as it does when idle is never waited for. One that responds more slowly, because of these commits or of
 * any other work, gets fewer and larger ones; then it responds faster, and the delay shrinks. What a commit for many streams takes
 * counts by the ten: its delay would add streams, and these would keep the delay.
 *
 * <p>By the rate of the calls: two commits begin at least {@link RateInterval} apart, at most {@code maxCommitDelay}. With the
 * default that is 2.5 ms at 1,000 calls/s and 4.5 ms at 10,000/s. The delay does not change the rate of callers who do not
 * wait.
 *
 * <p>The delay ends early when waiting cannot help: when as many calls wait as were outstanding at most within the last
 * half to whole second, so that no caller is left who could add one. A single caller is therefore never delayed. Nor is the
 * call of a blocked caller, who publishes less the longer it waits: the callers that share a busy processor would wait for
 * the slowest of them with each commit.
 */
final class CommitPace {
    /** Larger batches are followed by no delay: what their commit costs is already shared by many events. */
    static final int SMALL_BATCH_EVENTS_MAX = 100;

    /** A commit for more streams takes longer for each of them, however busy the database is. */
    private static final int FEW_STREAMS = 10;

    private static final int TOLERANCE = 2;
    private static final int GAIN = 2;
    /** The average moves towards the newest commit by one in this number. */
    private static final int AVERAGED_COMMITS = 8;

    private static final long FASTEST_HALF_WINDOW_NANOS = TimeUnit.MINUTES.toNanos(5);
    private static final long OUTSTANDING_HALF_WINDOW_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private final long delayNanosMax;
    private final RecentMax outstanding;
    /** The maximum of the negative durations. */
    private final RecentMax fastest = new RecentMax(FASTEST_HALF_WINDOW_NANOS);

    private long recentNanos;
    private long delayNanos;
    private long lastEndNanos;

    private final RateInterval rate;
    private long intervalNanos;
    private long lastBeginNanos;

    /** @param delayNanosMax 0 for no delay */
    CommitPace(long delayNanosMax) {
        this(delayNanosMax, OUTSTANDING_HALF_WINDOW_NANOS);
    }

    CommitPace(long delayNanosMax, long outstandingHalfWindowNanos) {
        this.delayNanosMax = delayNanosMax;
        this.rate = new RateInterval(delayNanosMax);
        this.outstanding = new RecentMax(outstandingHalfWindowNanos);
    }

    /** Records the number of calls that wait or are being appended. */
    void recordOutstanding(int calls, long nowNanos) {
        outstanding.record(calls, nowNanos);
    }

    /** Returns the number of calls above which no further one is expected. */
    int callsExpected(long nowNanos) {
        return (int) Math.max(1, outstanding.get(nowNanos));
    }

    /** Records the beginning of a batch. */
    void recordBegin(int calls, int events, long nowNanos) {
        rate.record(calls, nowNanos);
        intervalNanos = events > SMALL_BATCH_EVENTS_MAX ? 0 : rate.nanos();
        lastBeginNanos = nowNanos;
    }

    /** Records the end of a batch, whatever its outcome. */
    void recordCommit(int events, int streams, long nanos, long nowNanos) {
        if (delayNanosMax == 0) {
            return;
        }
        lastEndNanos = nowNanos;
        if (events > SMALL_BATCH_EVENTS_MAX) {
            delayNanos = 0;
            return;
        }
        long ofFew = nanos * FEW_STREAMS / Math.max(FEW_STREAMS, streams);
        fastest.record(-ofFew, nowNanos);
        long tolerated = TOLERANCE * -fastest.get(nowNanos);
        // What exceeds the maximum, such as a commit that was retried during an outage, would only be remembered for
        // longer.
        long shown = Math.min(ofFew, tolerated + delayNanosMax);
        recentNanos += recentNanos == 0 ? shown : (shown - recentNanos) / AVERAGED_COMMITS;
        delayNanos = Math.clamp(GAIN * (recentNanos - tolerated), 0, delayNanosMax);
    }

    /** Returns for how long the next commit is still to be delayed; 0 or less if it is not. */
    long remainingNanos(long nowNanos) {
        long byLoad = delayNanos == 0 ? 0 : lastEndNanos + delayNanos - nowNanos;
        long byRate = intervalNanos == 0 ? 0 : lastBeginNanos + intervalNanos - nowNanos;
        return Math.max(byLoad, byRate);
    }

    /** The maximum of the values of the current half window and of the one before. */
    private static final class RecentMax {
        private static final long EMPTY = Long.MIN_VALUE;

        private final long halfWindowNanos;
        private long current = EMPTY;
        private long before = EMPTY;
        private long beganNanos;

        RecentMax(long halfWindowNanos) {
            this.halfWindowNanos = halfWindowNanos;
        }

        void record(long value, long nowNanos) {
            advance(nowNanos);
            current = Math.max(current, value);
        }

        long get(long nowNanos) {
            advance(nowNanos);
            return Math.max(current, before);
        }

        private void advance(long nowNanos) {
            if (current == EMPTY && before == EMPTY) {
                beganNanos = nowNanos;
            }
            long age = nowNanos - beganNanos;
            if (age >= halfWindowNanos) {
                before = age < 2 * halfWindowNanos ? current : EMPTY;
                current = EMPTY;
                beganNanos = nowNanos;
            }
        }
    }
}
