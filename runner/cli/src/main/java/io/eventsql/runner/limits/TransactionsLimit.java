package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/**
 * What publishing inside a transaction costs: the same business transaction with a row into a plain table and with a
 * publish; and how many events the relay moves to their stream, while transactions publish more.
 */
final class TransactionsLimit {
    private static final int CALLERS = 8;
    private static final int RELAY_CALLERS = 4;
    private static final int RELAY_EVENTS = 100;

    private final LimitsBench bench;
    private final InterleavedRounds rounds;

    TransactionsLimit(LimitsBench bench, LimitsSettings.Rounds rounds) {
        this.bench = bench;
        this.rounds = new InterleavedRounds(rounds, bench.stop(), bench.progress());
    }

    /** @throws StoppedException after a stop signal */
    TransactionsResult measure() throws SQLException {
        BusinessTransactions transactions = new BusinessTransactions(bench);
        String stream = bench.stream("transactions");
        bench.eventSql().createStream(StreamSpec.of(stream));
        String relayed = bench.stream("relayed");
        bench.eventSql().createStream(StreamSpec.of(relayed));
        List<MeasuredRate> rates = rounds.measure(
                "Transactions",
                List.of(
                        PublishContender.named(
                                "with a plain row, " + CALLERS + " callers",
                                transactions.toPlainTable(stream, 1),
                                CALLERS),
                        new Settled(
                                PublishContender.named(
                                        "with a publish, " + CALLERS + " callers",
                                        transactions.publishing(stream, 1),
                                        CALLERS),
                                new Arrivals(bench, stream)),
                        new Arrived(
                                "relayed, " + RELAY_CALLERS + " callers of " + RELAY_EVENTS,
                                PublishContender.named(
                                        "publishing", transactions.publishing(relayed, RELAY_EVENTS), RELAY_CALLERS),
                                new Arrivals(bench, relayed))));
        return TransactionsResult.of(rates.get(0), rates.get(1), rates.get(2));
    }

    /** The rate at which transactions are committed; what follows begins only when all events are in their stream. */
    private record Settled(PublishContender publishing, Arrivals arrivals) implements Contender {
        @Override
        public String name() {
            return publishing.name();
        }

        @Override
        public Stretch run(Duration time) throws SQLException {
            long before = arrivals.count();
            Stretch stretch = publishing.run(time);
            requireAll(arrivals, before, stretch);
            return stretch;
        }
    }

    /** The rate at which events get into their stream: the time counts until the last one is there. */
    private final class Arrived implements Contender {
        private final String name;
        private final PublishContender publishing;
        private final Arrivals arrivals;

        Arrived(String name, PublishContender publishing, Arrivals arrivals) {
            this.name = name;
            this.publishing = publishing;
            this.arrivals = arrivals;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public Stretch run(Duration time) throws SQLException {
            long before = arrivals.count();
            long start = bench.clock().nanos();
            Stretch stretch = publishing.run(time);
            requireAll(arrivals, before, stretch);
            return new Stretch(stretch.events(), stretch.calls(), bench.clock().nanos() - start);
        }
    }

    private static void requireAll(Arrivals arrivals, long before, Stretch stretch) throws SQLException {
        long arrived = arrivals.await(before + stretch.events()) - before;
        if (arrived != stretch.events()) {
            throw new IllegalStateException(
                    stretch.events() + " events were committed, but " + arrived + " got into their stream");
        }
    }
}
