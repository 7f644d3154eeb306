package io.eventsql.runner.limits;

import io.eventsql.runner.load.StopSignal;
import java.io.PrintStream;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Runs variants in rotation for several rounds. A temporary slowdown of the machine then affects all of them, and none
 * benefits from being the first. A warm-up round precedes the measured ones.
 */
final class InterleavedRounds {
    private final LimitsSettings.Rounds rounds;
    private final StopSignal stop;
    private final PrintStream progress;

    /** @param progress receives a line per interval */
    InterleavedRounds(LimitsSettings.Rounds rounds, StopSignal stop, PrintStream progress) {
        this.rounds = rounds;
        this.stop = stop;
        this.progress = progress;
    }

    /**
     * Measures the rate of each variant, in the order of the variants.
     *
     * @param what a description for the progress lines
     * @throws RunStoppedException after a stop signal
     */
    List<MeasuredRate> measure(String what, List<? extends Variant> variants) throws SQLException {
        List<List<MeasuredInterval>> intervals = new ArrayList<>();
        variants.forEach(variant -> intervals.add(new ArrayList<>()));
        for (int round = 0; round <= rounds.count(); round++) {
            for (int i = 0; i < variants.size(); i++) {
                MeasuredInterval interval = variants.get(i).run(rounds.duration());
                if (stop.isRaised()) {
                    throw new RunStoppedException();
                }
                show(what, round, variants.get(i), interval);
                if (round > 0) {
                    intervals.get(i).add(interval);
                }
            }
        }
        List<MeasuredRate> rates = new ArrayList<>();
        for (int i = 0; i < variants.size(); i++) {
            rates.add(MeasuredRate.of(variants.get(i).name(), intervals.get(i)));
        }
        return rates;
    }

    private void show(String what, int round, Variant variant, MeasuredInterval interval) {
        String when = round == 0 ? "warm-up" : "round " + round + " of " + rounds.count();
        progress.printf(
                Locale.ROOT, "%s, %s: %s %,.0f events/s%n", what, when, variant.name(), interval.eventsPerSecond());
    }
}
