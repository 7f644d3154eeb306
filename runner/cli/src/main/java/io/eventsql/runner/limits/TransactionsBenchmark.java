package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import io.eventsql.runner.driver.BusinessTransactions;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;
import java.util.List;
import java.util.ServiceLoader;

/**
 * Measures the cost of publishing inside a transaction by comparing the same business transaction with a plain insert
 * and with a publish. Also measures the rate at which the relay moves events to their stream while transactions publish
 * more.
 */
final class TransactionsBenchmark {
    private static final int CALLERS = 8;
    private static final int RELAY_CALLERS = 4;
    private static final int RELAY_EVENTS = 100;

    private final LimitsContext context;

    TransactionsBenchmark(LimitsContext context) {
        this.context = context;
    }

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        BusinessTransactions.Targets transactions = ServiceLoader.load(BusinessTransactions.class)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("Transactions of Spring are not on the class path"))
                .open(context.eventSql(), context.dataSource(), context.run());
        String stream = context.stream("transactions");
        context.eventSql().createStream(StreamSpec.of(stream));
        String relayed = context.stream("relayed");
        context.eventSql().createStream(StreamSpec.of(relayed));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        StreamLog relayedLog = new StreamLog(context.dataSource(), relayed);
        PublishVariant plainRow = PublishVariant.named(
                "with a plain row, " + CALLERS + " callers",
                context.load(transactions.plainRow(stream), 1, List.of()),
                CALLERS);
        PublishVariant publish = PublishVariant.named(
                "with a publish, " + CALLERS + " callers",
                context.load(transactions.publishing(stream), 1, List.of()),
                CALLERS);
        PublishVariant batches = PublishVariant.named(
                "publishing", context.load(transactions.publishing(relayed), RELAY_EVENTS, List.of()), RELAY_CALLERS);
        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Transactions",
                        List.of(
                                plainRow.variant(),
                                // The next variant starts only after all events are relayed.
                                new Variant(publish.name(), time -> relay(log, () -> publish.run(time))),
                                new Variant("relayed, " + RELAY_CALLERS + " callers of " + RELAY_EVENTS, time -> {
                                    long start = context.clock().nanos();
                                    MeasuredInterval interval = relay(relayedLog, () -> batches.run(time));
                                    return new MeasuredInterval(
                                            interval.events(),
                                            interval.calls(),
                                            context.clock().nanos() - start);
                                })));
        PartRecorder part = context.recorder(
                LimitsPart.TRANSACTIONS,
                "Spring transactions that write a business row and one event, and events until the last is in its"
                        + " stream; " + context.roundsText());
        rates.forEach(rate -> rate.addTo(part, "rates"));
        return part.add(
                        "ratios",
                        "publish / plain row",
                        "value",
                        rates.get(1).perSecond().ratioTo(rates.get(0).perSecond()))
                .part();
    }

    private interface Publishing {
        MeasuredInterval run();
    }

    /** Publishes and waits until all events are stored in their stream. */
    private MeasuredInterval relay(StreamLog log, Publishing publishing) throws SQLException {
        long before = log.heads();
        MeasuredInterval interval = publishing.run();
        long arrived = log.awaitHeads(context, before + interval.events()) - before;
        if (arrived != interval.events()) {
            throw new IllegalStateException(
                    interval.events() + " events were committed, but " + arrived + " were stored in their stream");
        }
        return interval;
    }
}
