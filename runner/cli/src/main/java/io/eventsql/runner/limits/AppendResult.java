package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.Statistics;
import java.util.List;

/**
 * How fast events were appended.
 *
 * @param eventBytesMean the mean size of a value, bytes
 * @param copyEventsPerCommit rows of one COPY and its transaction
 * @param copy the limit: append-only COPY into the same tables, from fewer connections to more
 * @param library the library's ways
 */
public record AppendResult(
        double eventBytesMean, int copyEventsPerCommit, List<MeasuredRate> copy, List<LibraryRate> library) {

    /**
     * One way of the library.
     *
     * @param rate how fast it was
     * @param ratioToCopy its rate in parts of each COPY's, in the order of {@link #copy()}
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
