package io.eventsql.runner.consumption;

/**
 * How far another machine's clock is ahead of this one's, out of one question and its answer.
 *
 * @param aheadMs milliseconds; negative: behind
 * @param uncertaintyMs how wrong that may be, milliseconds: half of what question and answer took together
 */
public record ClockOffset(double aheadMs, double uncertaintyMs) {

    /**
     * Takes the other clock's time as that of the middle between question and answer.
     *
     * @param askedMicros when the question was sent, by this clock
     * @param theirMicros the answer
     * @param answeredMicros when it was there, by this clock
     */
    static ClockOffset of(long askedMicros, long theirMicros, long answeredMicros) {
        double middle = (askedMicros + answeredMicros) / 2.0;
        return new ClockOffset((theirMicros - middle) / 1_000, (answeredMicros - askedMicros) / 2.0 / 1_000);
    }
}
