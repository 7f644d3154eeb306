package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Compares publishing to and consuming from a stream with many stored events with one that has few, in turns. The small
 * stream is created anew in each round, because it would grow.
 */
final class LargeStreamBenchmark {
    private static final int PARTITIONS = 10;
    private static final int COPIES_AT_ONCE = 2;
    private static final int CALLERS = 4;
    private static final long SMALL_EVENTS = 1_000_000;
    private static final int STATEMENTS = 500;

    private final LimitsContext context;
    private final InterleavedRounds rounds;
    private final long events;
    private int smallStreams;

    /** @param events the number of events in the large stream */
    LargeStreamBenchmark(LimitsContext context, LimitsSettings.Rounds rounds, long events) {
        this.context = context;
        this.rounds = new InterleavedRounds(rounds, context.stop(), context.progress());
        this.events = events;
    }

    /** @throws RunStoppedException after a stop signal */
    LargeStreamResult measure() throws SQLException {
        String large = context.stream("large");
        long start = context.clock().nanos();
        create(large, events);
        context.progress()
                .printf(
                        Locale.ROOT,
                        "Large: %,d events stored in %.0f s%n",
                        events,
                        (context.clock().nanos() - start) / 1e9);
        List<MeasuredRate> rates = rounds.measure(
                "Large",
                List.of(
                        variant("publish, large", time -> {
                            renewSmall(); // before the large stream's turn: what the server still writes delays that
                            return publish(large).run(time);
                        }),
                        variant("publish, small", time -> publish(small()).run(time)),
                        variant("end to end, small", time -> endToEnd(small()).run(time)),
                        variant("end to end, large", time -> endToEnd(large).run(time))));
        return LargeStreamResult.of(
                events, List.of(rates.get(1), rates.get(0), rates.get(2), rates.get(3)), costs(small()), costs(large));
    }

    private interface Interval {
        MeasuredInterval run(Duration time) throws SQLException;
    }

    private static Variant variant(String name, Interval interval) {
        return new Variant() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public MeasuredInterval run(Duration time) throws SQLException {
                return interval.run(time);
            }
        };
    }

    private PublishVariant publish(String stream) {
        return PublishVariant.async(context.publishLoad(stream, 1), CALLERS);
    }

    private EndToEndInterval endToEnd(String stream) {
        return new EndToEndInterval(context, stream, publish(stream));
    }

    private String small() {
        return context.stream("small_" + smallStreams);
    }

    private void renewSmall() throws SQLException {
        if (smallStreams > 0) {
            context.eventSql()
                    .deleteStream(
                            small(),
                            context.eventSql().previewDeleteStream(small()).confirmation());
        }
        smallStreams++;
        create(small(), Math.min(SMALL_EVENTS, events));
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
                if (count > SMALL_EVENTS) {
                    context.progress()
                            .printf(Locale.ROOT, "Large: %,d of %,d events%n", count / PARTITIONS * (p + 1), count);
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

    private LargeStreamResult.Costs costs(String stream) throws SQLException {
        StreamLog log = new StreamLog(context.dataSource(), stream);
        return new LargeStreamResult.Costs(
                log.heads(), log.tables(), log.bytes(), log.appendCost(STATEMENTS), log.fetchCost(STATEMENTS));
    }
}
