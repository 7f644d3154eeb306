package io.eventsql.runner.search;

import io.eventsql.runner.spec.SearchSpec;
import java.util.OptionalLong;
import java.util.function.LongPredicate;

/**
 * The order in which rates are tried: doubled from the lowest on as long as they hold, then halfway (by ratio) between
 * the highest that held and the lowest that did not, until both are close.
 */
final class RateSearch {
    private final SearchSpec spec;

    RateSearch(SearchSpec spec) {
        this.spec = spec;
    }

    /**
     * Searches.
     *
     * @param holds tries a rate, events/s; {@code false} also ends the doubling
     * @return the highest rate that held; empty: not even the lowest did
     */
    OptionalLong best(LongPredicate holds) {
        long rate = spec.fromRate();
        long held = 0;
        while (holds.test(rate)) {
            held = rate;
            if (rate == spec.toRate()) {
                return OptionalLong.of(held);
            }
            rate = Math.min(2 * rate, spec.toRate());
        }
        if (held == 0) {
            return OptionalLong.empty();
        }
        long tooMuch = rate;
        while (tooMuch - held > 1 && (double) tooMuch / held > 1 + spec.precision()) {
            long middle = Math.clamp(Math.round(Math.sqrt((double) held * tooMuch)), held + 1, tooMuch - 1);
            if (holds.test(middle)) {
                held = middle;
            } else {
                tooMuch = middle;
            }
        }
        return OptionalLong.of(held);
    }
}
