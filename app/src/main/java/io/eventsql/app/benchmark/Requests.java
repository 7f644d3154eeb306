package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.regex.Pattern;
import org.springframework.http.HttpStatus;
import org.springframework.web.server.ResponseStatusException;

/**
 * Validates requests. Rejects invalid parameters with status 400 and a message that names the parameter and its limit.
 */
final class Requests {
    private static final Pattern BARRIER_NAME = Pattern.compile("[A-Za-z0-9_-]{1,40}");

    private Requests() {}

    static void requireRun(String run) {
        require(
                BenchmarkEvent.isRun(run),
                "run must be " + BenchmarkEvent.RUN_LENGTH + " lower-case hexadecimal characters");
    }

    static void requireBarrierName(String name) {
        require(BARRIER_NAME.matcher(name).matches(), "name must be 1 to 40 letters, digits, underscores and hyphens");
    }

    static void requireRange(String parameter, int value, int min, int max) {
        require(
                value >= min && value <= max,
                parameter + " must be between " + min + " and " + max + ", but is " + value);
    }

    private static void require(boolean condition, String problem) {
        if (!condition) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST, problem);
        }
    }
}
