package io.eventsql.runner.limits;

import io.eventsql.runner.spec.LimitsNumber;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs variants in rotation for several rounds. A temporary slowdown of the machine then affects all of them, and none
 * benefits from being the first. A warm-up round precedes the measured ones.
 */
final class InterleavedRounds {
    private final LimitsContext context;

    InterleavedRounds(LimitsContext context) {
        this.context = context;
    }

    /**
     * Measures the rate of each variant, in the order of the variants.
     *
     * @param what a description for the progress lines
     * @throws RunStoppedException after a stop signal
     */
    List<MeasuredRate> measure(String what, List<Variant> variants) throws SQLException {
        int rounds = context.number(LimitsNumber.ROUNDS);
        List<List<MeasuredInterval>> intervals = new ArrayList<>();
        variants.forEach(variant -> intervals.add(new ArrayList<>()));
        for (int round = 0; round <= rounds; round++) {
            for (int i = 0; i < variants.size(); i++) {
                MeasuredInterval interval = variants.get(i).run(context.spec().round());
                context.checkStopped();
                context.show(
                        "%s, %s: %s %,.0f events/s",
                        what,
                        round == 0 ? "warm-up" : "round " + round + " of " + rounds,
                        variants.get(i).name(),
                        interval.eventsPerSecond());
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
}
