package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Statistics;

/**
 * The result of the transactions benchmark.
 *
 * @param plainRow business transactions that insert a row into a plain table without a consumer
 * @param publish the same transactions with a publish, while the relay runs
 * @param publishToPlainRow the rate with a publish divided by that with a plain row
 * @param relayed the rate at which events reach their stream while transactions of many events publish as fast as
 *     possible, measured until the last event is stored
 */
public record TransactionsResult(
        MeasuredRate plainRow, MeasuredRate publish, double publishToPlainRow, MeasuredRate relayed) {

    static TransactionsResult of(MeasuredRate plainRow, MeasuredRate publish, MeasuredRate relayed) {
        return new TransactionsResult(
                plainRow, publish, Statistics.ratio(publish.eventsPerSecond(), plainRow.eventsPerSecond()), relayed);
    }
}
