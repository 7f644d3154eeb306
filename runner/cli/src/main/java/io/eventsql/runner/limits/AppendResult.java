package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.Statistics;
import java.util.List;

/**
 * The result of the append benchmark.
 *
 * @param eventBytesMean the mean size of a value in bytes
 * @param copyEventsPerCommit the rows per COPY and transaction
 * @param copy the upper bound: COPY into the same tables, by increasing number of connections
 * @param library the library's publish methods
 */
public record AppendResult(
        double eventBytesMean, int copyEventsPerCommit, List<MeasuredRate> copy, List<LibraryRate> library) {

    /**
     * The rate of one publish method of the library.
     *
     * @param rate the measured rate
     * @param ratioToCopy the rate divided by that of each COPY, in the order of {@link #copy()}
     */
    public record LibraryRate(@JsonUnwrapped MeasuredRate rate, List<Double> ratioToCopy) {}

    static AppendResult of(
            double eventBytesMean, int copyEventsPerCommit, List<MeasuredRate> copy, List<MeasuredRate> library) {
        return new AppendResult(
                eventBytesMean,
                copyEventsPerCommit,
                copy,
                library.stream()
                        .map(rate -> new LibraryRate(
                                rate,
                                copy.stream()
                                        .map(limit -> Statistics.ratio(rate.eventsPerSecond(), limit.eventsPerSecond()))
                                        .toList()))
                        .toList());
    }
}
