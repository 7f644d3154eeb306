package io.eventsql.runner.limits;

import io.eventsql.runner.load.StopSignal;
import java.io.PrintStream;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Lets contenders run in turn, several rounds: what slows the machine down for a while then slows down all of them, and
 * none gains by being the first. A round before the measured ones warms everything up.
 */
final class InterleavedRounds {
    private final LimitsSettings.Rounds rounds;
    private final StopSignal stop;
    private final PrintStream progress;

    /** @param progress takes a line for each stretch */
    InterleavedRounds(LimitsSettings.Rounds rounds, StopSignal stop, PrintStream progress) {
        this.rounds = rounds;
        this.stop = stop;
        this.progress = progress;
    }

    /**
     * The rate of each, in the order of the contenders.
     *
     * @param what is measured, for people
     * @throws StoppedException after a stop signal
     */
    List<MeasuredRate> measure(String what, List<? extends Contender> contenders) throws SQLException {
        List<List<Stretch>> stretches = new ArrayList<>();
        contenders.forEach(contender -> stretches.add(new ArrayList<>()));
        for (int round = 0; round <= rounds.count(); round++) {
            for (int i = 0; i < contenders.size(); i++) {
                Stretch stretch = contenders.get(i).run(rounds.time());
                if (stop.isRaised()) {
                    throw new StoppedException();
                }
                show(what, round, contenders.get(i), stretch);
                if (round > 0) {
                    stretches.get(i).add(stretch);
                }
            }
        }
        List<MeasuredRate> rates = new ArrayList<>();
        for (int i = 0; i < contenders.size(); i++) {
            rates.add(MeasuredRate.of(contenders.get(i).name(), stretches.get(i)));
        }
        return rates;
    }

    private void show(String what, int round, Contender contender, Stretch stretch) {
        String when = round == 0 ? "warm-up" : "round " + round + " of " + rounds.count();
        progress.printf(
                Locale.ROOT, "%s, %s: %s %,.0f events/s%n", what, when, contender.name(), stretch.eventsPerSecond());
    }
}
