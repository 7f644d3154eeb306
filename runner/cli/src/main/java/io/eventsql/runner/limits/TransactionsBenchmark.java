package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

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
    private final InterleavedRounds rounds;

    TransactionsBenchmark(LimitsContext context, LimitsSettings.Rounds rounds) {
        this.context = context;
        this.rounds = new InterleavedRounds(rounds, context.stop(), context.progress());
    }

    /** @throws RunStoppedException after a stop signal */
    TransactionsResult measure() throws SQLException {
        BusinessTransactions transactions = new BusinessTransactions(context);
        String stream = context.stream("transactions");
        context.eventSql().createStream(StreamSpec.of(stream));
        String relayed = context.stream("relayed");
        context.eventSql().createStream(StreamSpec.of(relayed));
        List<MeasuredRate> rates = rounds.measure(
                "Transactions",
                List.of(
                        PublishVariant.named(
                                "with a plain row, " + CALLERS + " callers",
                                transactions.plainRowLoad(stream, 1),
                                CALLERS),
                        new CommitRateVariant(
                                PublishVariant.named(
                                        "with a publish, " + CALLERS + " callers",
                                        transactions.publishLoad(stream, 1),
                                        CALLERS),
                                new StoredEventCounter(context, stream)),
                        new RelayRateVariant(
                                "relayed, " + RELAY_CALLERS + " callers of " + RELAY_EVENTS,
                                PublishVariant.named(
                                        "publishing", transactions.publishLoad(relayed, RELAY_EVENTS), RELAY_CALLERS),
                                new StoredEventCounter(context, relayed))));
        return TransactionsResult.of(rates.get(0), rates.get(1), rates.get(2));
    }

    /** Measures the commit rate of transactions. The next variant starts only after all events are relayed. */
    private record CommitRateVariant(PublishVariant publishing, StoredEventCounter counter) implements Variant {
        @Override
        public String name() {
            return publishing.name();
        }

        @Override
        public MeasuredInterval run(Duration time) throws SQLException {
            long before = counter.count();
            MeasuredInterval interval = publishing.run(time);
            requireAll(counter, before, interval);
            return interval;
        }
    }

    /** Measures the relay rate: the interval ends when the last event is stored in its stream. */
    private final class RelayRateVariant implements Variant {
        private final String name;
        private final PublishVariant publishing;
        private final StoredEventCounter counter;

        RelayRateVariant(String name, PublishVariant publishing, StoredEventCounter counter) {
            this.name = name;
            this.publishing = publishing;
            this.counter = counter;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public MeasuredInterval run(Duration time) throws SQLException {
            long before = counter.count();
            long start = context.clock().nanos();
            MeasuredInterval interval = publishing.run(time);
            requireAll(counter, before, interval);
            return new MeasuredInterval(
                    interval.events(), interval.calls(), context.clock().nanos() - start);
        }
    }

    private static void requireAll(StoredEventCounter counter, long before, MeasuredInterval interval)
            throws SQLException {
        long arrived = counter.await(before + interval.events()) - before;
        if (arrived != interval.events()) {
            throw new IllegalStateException(
                    interval.events() + " events were committed, but " + arrived + " were stored in their stream");
        }
    }
}
