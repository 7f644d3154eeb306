package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberSet;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Counts one runner's warm-up or measured events. Thread-safe: partitions are handled concurrently, and each takes the
 * lock once for many events. All partitions share one set of numbers, because a duplicate may arrive in another
 * partition than its original.
 */
final class PhaseTracker {
    private final ReentrantLock lock = new ReentrantLock();
    private final NumberSet numbers = new NumberSet();
    private final SortedSet<String> partitions = new TreeSet<>();
    private final KeyOrder keyOrder = new KeyOrder();

    private final LatenciesBySecond endToEndMicros = new LatenciesBySecond();

    private long received;
    private long highestNumber = PhaseReport.NO_NUMBER;
    private long orderViolations;
    private long handledBeforeIntended;
    private long firstHandledAtMicros;
    private long lastHandledAtMicros;

    /**
     * Records the batch's events {@code from} (inclusive) to {@code to} (exclusive), which all belong to this phase.
     */
    void record(DecodedBatch batch, int from, int to, long handledAtMicros) {
        lock.lock();
        try {
            firstHandledAtMicros = received == 0 ? handledAtMicros : Math.min(firstHandledAtMicros, handledAtMicros);
            lastHandledAtMicros = Math.max(lastHandledAtMicros, handledAtMicros);
            received += to - from;
            endToEndMicros.advanceTo(handledAtMicros);
            partitions.add(batch.partition());
            for (int i = from; i < to; i++) {
                BenchmarkEvent event = batch.event(i);
                recordNumber(batch.key(i), event.number());
                recordLatency(handledAtMicros - event.intendedAtMicros());
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Records a number. A repeated number counts only as a duplicate, because a redelivery after a crash is
     * legitimately late.
     */
    private void recordNumber(@Nullable String key, long number) {
        highestNumber = Math.max(highestNumber, number);
        if (numbers.add(number) && key != null && !keyOrder.record(key, number)) {
            orderViolations++;
        }
    }

    private void recordLatency(long micros) {
        if (micros < 0) {
            handledBeforeIntended++;
        }
        endToEndMicros.record(Math.max(micros, 0));
    }

    /**
     * Returns a snapshot of the counts.
     *
     * @param detailed whether to include the numbers and the latencies by second
     */
    PhaseReport report(boolean detailed) {
        lock.lock();
        try {
            return new PhaseReport(
                    received,
                    numbers.size(),
                    received - numbers.size(),
                    highestNumber,
                    orderViolations,
                    handledBeforeIntended,
                    firstHandledAtMicros,
                    lastHandledAtMicros,
                    endToEndMicros.all(),
                    detailed
                            ? new PhaseDetail(numbers.copy(), new TreeSet<>(partitions), endToEndMicros.encoded())
                            : null);
        } finally {
            lock.unlock();
        }
    }
}
