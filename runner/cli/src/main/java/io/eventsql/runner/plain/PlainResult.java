package io.eventsql.runner.plain;

import java.util.List;

/**
 * What plain client programs and the machine reached on the server of a run: {@code plain.json}.
 *
 * @param programs one for each measured phase with callers; empty if the driver has no plain program
 * @param limits the limits of the machine
 */
public record PlainResult(List<Program> programs, MachineLimits limits) {
    /** The file in the folder of the run. */
    public static final String FILE = "plain.json";

    /**
     * The rates of a program, see {@link io.eventsql.runner.driver.PlainProgram.Rates}.
     *
     * @param phase the phase with the same load
     * @param publishRate events/s
     * @param consumeRate events/s
     */
    public record Program(String phase, double publishRate, double consumeRate) {}
}
