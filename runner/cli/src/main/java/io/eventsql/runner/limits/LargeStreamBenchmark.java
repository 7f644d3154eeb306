package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Compares publishing to and consuming from a stream with many stored events with one that has few, in turns. The small
 * stream is created anew in each round, because it would grow.
 */
final class LargeStreamBenchmark extends LimitsBenchmark {
    private static final int PARTITIONS = 10;
    private static final int COPIES_AT_ONCE = 2;
    private static final PhaseSpec CALLS = Calls.async(4);
    private static final long SMALL_EVENTS_MAX = 1_000_000;
    private static final int STATEMENTS = 500;

    private final long events;
    private int smallStreams;

    LargeStreamBenchmark(LimitsContext context) {
        super(context, LimitsPart.LARGE, "a stream with many stored events, and one with few; " + context.roundsText());
        this.events = (long) context.spec().number(LimitsNumber.LARGE_EVENTS);
    }

    @Override
    void measure() throws SQLException {
        String large = context.stream("large");
        long start = context.clock().nanos();
        create(large, events);
        context.show(
                "Large: %,d events stored in %.0f s", events, (context.clock().nanos() - start) / 1e9);
        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Large",
                        List.of(
                                new Variant("publish, large", time -> {
                                    // Before the large stream's turn: what the server still writes delays that.
                                    renewSmall();
                                    return publish(large, time);
                                }),
                                new Variant("publish, small", time -> publish(small(), time)),
                                new Variant("end to end, small", time -> endToEnd(small(), time)),
                                new Variant("end to end, large", time -> endToEnd(large, time))));
        rates.forEach(rate -> rate.addTo(part, "rates"));
        part.add("large / small", "publish", "value", ratio(rates.get(0), rates.get(1)))
                .add("large / small", "end to end", "value", ratio(rates.get(3), rates.get(2)));
        addCosts("small", small());
        addCosts("large", large);
    }

    private static Figure ratio(MeasuredRate of, MeasuredRate to) {
        return of.perSecond().ratioTo(to.perSecond());
    }

    private MeasuredInterval publish(String stream, Duration time) {
        try (StreamLoad load = StreamLoad.attach(context, stream, LoadedStream.ofLibrary())) {
            return load.turn(CALLS, time);
        }
    }

    /** Publishes with a new consumer that starts at the head of the stream. */
    private MeasuredInterval endToEnd(String stream, Duration time) {
        LoadedStream loaded = LoadedStream.ofLibrary().withConsumers(1).with("start", "latest");
        MeasuredInterval measured;
        try (StreamLoad load = StreamLoad.attach(context, stream, loaded)) {
            measured = load.turn(CALLS, time);
        }
        context.eventSql().consumer(stream, LoadSession.consumerName(0)).delete();
        return measured;
    }

    private String small() {
        return context.stream("small_" + smallStreams);
    }

    private void renewSmall() throws SQLException {
        if (smallStreams > 0) {
            context.deleteStream(small());
        }
        smallStreams++;
        create(small(), Math.min(SMALL_EVENTS_MAX, events / 2));
    }

    private void create(String stream, long count) throws SQLException {
        context.eventSql().createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        try (ExecutorService threads = Executors.newFixedThreadPool(COPIES_AT_ONCE)) {
            List<Future<?>> copies = new ArrayList<>();
            for (int p = 0; p < PARTITIONS; p++) {
                int partition = p;
                copies.add(threads.submit(() -> {
                    log.copy(context.run(), partition, count / PARTITIONS, context.stop());
                    return null;
                }));
            }
            for (int p = 0; p < PARTITIONS; p++) {
                copies.get(p).get();
                if (count == events) {
                    context.show("Large: %,d of %,d events", count / PARTITIONS * (p + 1), count);
                }
            }
        } catch (ExecutionException e) {
            throw new IllegalStateException("Filling " + stream + " failed: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while filling " + stream, e);
        }
        context.checkStopped();
    }

    /** Adds the size of a stream after the rounds, and what statements cost in it. */
    private void addCosts(String name, String stream) throws SQLException {
        StreamLog log = new StreamLog(context.dataSource(), stream);
        StreamLog.StatementCost append = log.appendCost(STATEMENTS);
        StreamLog.StatementCost fetch = log.fetchCost(STATEMENTS);
        part.add("streams", name, "events", Figure.of(log.heads()))
                .add("streams", name, "tables", Figure.of(log.tables()))
                .add("streams", name, "bytes", Figure.of(log.bytes(), "bytes"))
                .add("streams", name, "append_locks", Figure.of(append.locks()))
                .add("streams", name, "append_us", Figure.of(append.micros(), "us"))
                .add("streams", name, "fetch_locks", Figure.of(fetch.locks()))
                .add("streams", name, "fetch_us", Figure.of(fetch.micros(), "us"));
    }
}
