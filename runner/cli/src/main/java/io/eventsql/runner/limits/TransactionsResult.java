package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Statistics;

/**
 * What publishing inside a transaction costs.
 *
 * @param plainRow business transactions with a row into a plain table, from which nobody takes it
 * @param publish the same with a publish, while the relay moves what is committed
 * @param publishToPlainRow the rate of the latter in parts of the former's
 * @param relayed how fast events got into their stream while transactions of many events published as fast as they could,
 *     until the last one was there
 */
public record TransactionsResult(
        MeasuredRate plainRow, MeasuredRate publish, double publishToPlainRow, MeasuredRate relayed) {

    static TransactionsResult of(MeasuredRate plainRow, MeasuredRate publish, MeasuredRate relayed) {
        return new TransactionsResult(
                plainRow, publish, Statistics.ratio(publish.eventsPerSecond(), plainRow.eventsPerSecond()), relayed);
    }
}
