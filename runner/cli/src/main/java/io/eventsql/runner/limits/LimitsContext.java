package io.eventsql.runner.limits;

import io.eventsql.EventSql;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.drivers.Drivers;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import javax.sql.DataSource;

/**
 * The context shared by the parts of a limits run.
 *
 * @param eventSql the library, connected to one database
 * @param dataSource direct access to the same database
 * @param spec the parts and their numbers
 * @param environment the environment variables that configure the database
 * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams and tables
 * @param clock the time source
 * @param stop aborts the run
 * @param progress receives a line per step
 */
public record LimitsContext(
        EventSql eventSql,
        DataSource dataSource,
        LimitsSpec spec,
        Map<String, String> environment,
        String run,
        LoadClock clock,
        StopSignal stop,
        Consumer<String> progress) {

    private static final int EVENTS_WEIGHED = 1_000;
    private static final long STOP_POLL_NANOS = 100_000_000;

    /** Returns one of the numbers of the run. */
    int number(LimitsNumber number) {
        return spec.integer(number);
    }

    /** Returns the rounds and their duration in words. */
    String roundsText() {
        int rounds = number(LimitsNumber.ROUNDS);
        return String.format(
                Locale.ROOT,
                "median of %d %s of %.1f s",
                rounds,
                rounds == 1 ? "round" : "rounds",
                spec.number(LimitsNumber.ROUND_SECONDS));
    }

    /** Shows a line. */
    @SuppressWarnings("AnnotateFormatMethod") // the annotation would be a dependency
    void show(String format, Object... arguments) {
        progress.accept(String.format(Locale.ROOT, format, arguments));
    }

    /** Returns the name of a stream of this run. */
    String stream(String what) {
        return "limits_" + what + "_" + run;
    }

    /** Deletes a stream of this run. */
    void deleteStream(String stream) {
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
    }

    /** Returns the mean bytes of an event of this run: those of its value, because it has neither key nor headers. */
    double meanEventBytes() {
        long now = clock.epochMicros();
        return LongStream.range(0, EVENTS_WEIGHED)
                .mapToInt(number -> new BenchmarkEvent(run, 0, false, number, now).encode().length)
                .average()
                .orElseThrow();
    }

    /** Returns a stream with the storage that is measured. */
    LoadedStream loadedStream() {
        return LoadedStream.ofLibrary().with("storage", spec.storage());
    }

    /** Opens the driver of a stream. */
    Driver openDriver(LoadedStream stream) {
        DriverProvider provider = Drivers.find(stream.driver())
                .orElseThrow(() -> new IllegalStateException("Unknown driver " + stream.driver()));
        try {
            return provider.open(new DriverSettings(stream.options(), environment));
        } catch (Exception e) {
            throw new IllegalStateException("The driver " + stream.driver() + " cannot start: " + e.getMessage(), e);
        }
    }

    /** @throws RunStoppedException after a stop signal */
    void checkStopped() {
        if (stop.isRaised()) {
            throw new RunStoppedException();
        }
    }

    /** @throws RunStoppedException after a stop signal */
    void sleep(int seconds) {
        long end = clock.nanos() + seconds * 1_000_000_000L;
        for (long left = end - clock.nanos(); left > 0; left = end - clock.nanos()) {
            checkStopped();
            clock.parkNanos(Math.min(left, STOP_POLL_NANOS));
        }
    }

    /** A number that rises. */
    interface RisingCount {
        long now() throws SQLException;
    }

    /**
     * Waits until a number has reached a value, or has not risen for a long time. Returns the number.
     *
     * @throws RunStoppedException after a stop signal
     */
    long await(RisingCount count, long expected, Duration noProgress, Duration poll) throws SQLException {
        long before = count.now();
        long progressed = clock.nanos();
        while (before < expected && clock.nanos() - progressed < noProgress.toNanos()) {
            checkStopped();
            clock.parkNanos(poll.toNanos());
            long now = count.now();
            if (now > before) {
                before = now;
                progressed = clock.nanos();
            }
        }
        return before;
    }

    /** Executes a statement. */
    void execute(String sql) throws SQLException {
        Jdbc.execute(dataSource, sql);
    }

    /** Executes a query and returns its number; 0 for a null. */
    long query(String sql, Object... parameters) throws SQLException {
        return Jdbc.number(dataSource, sql, parameters);
    }
}
