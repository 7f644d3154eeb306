package io.eventsql.runner.consumption;

/**
 * The offset of another machine's clock, measured by one request and its response.
 *
 * @param aheadMs how far the other clock is ahead, in milliseconds; negative if it is behind
 * @param uncertaintyMs the maximum error in milliseconds: half of the round-trip time
 */
public record ClockOffset(double aheadMs, double uncertaintyMs) {

    /**
     * Assumes that the other clock was read in the middle of the round trip.
     *
     * @param askedMicros the time of the request on this clock
     * @param theirMicros the time on the other clock
     * @param answeredMicros the time of the response on this clock
     */
    static ClockOffset of(long askedMicros, long theirMicros, long answeredMicros) {
        double middle = (askedMicros + answeredMicros) / 2.0;
        return new ClockOffset((theirMicros - middle) / 1_000, (answeredMicros - askedMicros) / 2.0 / 1_000);
    }
}
