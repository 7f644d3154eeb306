package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.RatioInterval;
import io.eventsql.runner.measure.Statistics;
import java.util.Comparator;
import java.util.List;

/**
 * The result of the append benchmark.
 *
 * @param eventBytesMean the mean size of a value in bytes
 * @param copyEventsPerCommit the rows per COPY and transaction
 * @param copy the upper bound: COPY into the same tables, by increasing number of connections
 * @param library the library's publish methods, without a consumer, then with one, the last with one event per call
 * @param groupCommit the bare group commit with a consumer, by increasing number of connections
 * @param singleToGroupCommit one event per call end to end, divided by the faster bare group commit
 */
public record AppendResult(
        double eventBytesMean,
        int copyEventsPerCommit,
        List<MeasuredRate> copy,
        List<LibraryRate> library,
        List<MeasuredRate> groupCommit,
        RatioInterval singleToGroupCommit) {

    /**
     * The rate of one publish method of the library.
     *
     * @param rate the measured rate
     * @param ratioToCopy the rate divided by that of each COPY, in the order of {@link #copy()}
     * @param toLastCopy the rate divided by that of the COPY over most connections in the same round
     */
    public record LibraryRate(@JsonUnwrapped MeasuredRate rate, List<Double> ratioToCopy, RatioInterval toLastCopy) {}

    static AppendResult of(
            double eventBytesMean,
            int copyEventsPerCommit,
            List<MeasuredRate> copy,
            List<MeasuredRate> library,
            List<MeasuredRate> groupCommit) {
        MeasuredRate best = groupCommit.stream()
                .max(Comparator.comparingDouble(MeasuredRate::eventsPerSecond))
                .orElseThrow();
        return new AppendResult(
                eventBytesMean,
                copyEventsPerCommit,
                copy,
                library.stream()
                        .map(rate -> new LibraryRate(
                                rate,
                                copy.stream()
                                        .map(limit -> Statistics.ratio(rate.eventsPerSecond(), limit.eventsPerSecond()))
                                        .toList(),
                                rate.ratioTo(copy.getLast())))
                        .toList(),
                groupCommit,
                library.getLast().ratioTo(best));
    }
}
