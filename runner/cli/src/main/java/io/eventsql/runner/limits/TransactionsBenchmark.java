package io.eventsql.runner.limits;

import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/**
 * Measures the cost of publishing inside a transaction by comparing the same business transaction with a plain insert
 * and with a publish. Also measures the rate at which the relay moves events to their stream while transactions publish
 * more.
 */
final class TransactionsBenchmark extends LimitsBenchmark {
    private static final PhaseSpec PLAIN_ROW = PhaseSpec.ofCallers("with a plain row, 8 callers", 8, false, 1);
    private static final PhaseSpec PUBLISH = PhaseSpec.ofCallers("with a publish, 8 callers", 8, false, 1);
    private static final PhaseSpec RELAYED = PhaseSpec.ofCallers("relayed, 4 callers of 100", 4, false, 100);
    private static final String STREAM = "transactions";
    private static final LoadedStream TRANSACTIONS = LoadedStream.of("spring-transactions");

    TransactionsBenchmark(LimitsContext context) {
        super(
                context,
                LimitsPart.TRANSACTIONS,
                "Spring transactions that write a business row and one event, and events until the last is in its"
                        + " stream; " + context.roundsText());
    }

    @Override
    void measure() throws SQLException {
        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Transactions",
                        List.of(
                                Variant.ofPhase(context, STREAM, TRANSACTIONS.with("writes", "rows"), PLAIN_ROW),
                                new Variant(PUBLISH.name(), time -> relay(PUBLISH, time, false)),
                                new Variant(RELAYED.name(), time -> relay(RELAYED, time, true))));
        rates.forEach(rate -> rate.addTo(part, "rates"));
        part.add(
                "ratios",
                "publish / plain row",
                "value",
                rates.get(1).perSecond().ratioTo(rates.get(0).perSecond()));
    }

    /**
     * Publishes, and waits until all events are stored in their stream, so that the next variant starts only then.
     *
     * @param untilStored whether the wait belongs to the interval
     */
    private MeasuredInterval relay(PhaseSpec phase, Duration time, boolean untilStored) throws SQLException {
        return StreamLoad.onNew(context, STREAM, TRANSACTIONS, load -> {
            long start = context.clock().nanos();
            MeasuredInterval interval = load.turn(phase, time);
            long stored =
                    new StreamLog(context.dataSource(), load.stream()).awaitHeads(context, load.publishedEvents());
            if (stored != load.publishedEvents()) {
                throw new IllegalStateException(
                        load.publishedEvents() + " events were committed, but " + stored + " were stored");
            }
            long nanos = context.clock().nanos() - start;
            return untilStored ? new MeasuredInterval(stored, interval.calls(), nanos) : interval;
        });
    }
}
