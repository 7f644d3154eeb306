package io.eventsql.runner.queries;

import io.eventsql.Event;
import java.util.Random;

/**
 * Positions of a ball and fifteen players on a field of 10,000 by 10,000, one event at a time, the same ones for the same seed. A
 * sensor moves by up to 2,000 in each direction from one event to the next. Not thread-safe.
 */
final class Positions {
    /** The name of the stream. */
    static final String STREAM = "positions";

    private static final int SENSORS = 16;
    private static final int FIELD = 10_000;
    private static final int STEP = 2_000;
    private static final int SPEED_MAX = 100;

    private final Random random;
    private final int[] x = new int[SENSORS];
    private final int[] y = new int[SENSORS];

    Positions(long seed) {
        random = new Random(seed);
        for (int sensor = 0; sensor < SENSORS; sensor++) {
            x[sensor] = random.nextInt(FIELD);
            y[sensor] = random.nextInt(FIELD);
        }
    }

    /**
     * Returns the next event.
     *
     * @param number the events of one sensor are {@value #SENSORS} numbers apart
     * @param atMs the sensor's time
     */
    Event next(long number, long atMs) {
        int sensor = (int) (number % SENSORS);
        x[sensor] = moved(x[sensor]);
        y[sensor] = moved(y[sensor]);
        return Event.ofText(
                sensor == 0 ? "ball" : "player-" + sensor,
                "{\"at_ms\":" + atMs + ",\"x\":" + x[sensor] + ",\"y\":" + y[sensor] + ",\"speed\":"
                        + random.nextInt(SPEED_MAX) + "}");
    }

    private int moved(int from) {
        int to = from + random.nextInt(2 * STEP + 1) - STEP;
        return Math.floorMod(to, FIELD);
    }
}
