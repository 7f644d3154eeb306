package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Compares publishing to and consuming from a stream with many stored events with one that has few, in turns. */
final class LargeStreamBenchmark {
    private static final int PARTITIONS = 10;
    private static final int COPIES_AT_ONCE = 2;
    private static final int CALLERS = 4;
    private static final long SMALL_EVENTS = 1_000_000;
    private static final int STATEMENTS = 500;

    private final LimitsContext context;
    private final InterleavedRounds rounds;
    private final long events;

    /** @param events the number of events in the large stream */
    LargeStreamBenchmark(LimitsContext context, LimitsSettings.Rounds rounds, long events) {
        this.context = context;
        this.rounds = new InterleavedRounds(rounds, context.stop(), context.progress());
        this.events = events;
    }

    /** @throws RunStoppedException after a stop signal */
    LargeStreamResult measure() throws SQLException {
        StreamLog small = create("small", Math.min(SMALL_EVENTS, events));
        StreamLog large = create("large", events);
        List<Variant> variants = new ArrayList<>();
        for (String size : List.of("small", "large")) {
            variants.add(publish("publish, " + size, size));
        }
        for (String size : List.of("small", "large")) {
            variants.add(new EndToEndVariant(
                    "end to end, " + size, context, context.stream(size), publish("publish, " + size, size)));
        }
        List<MeasuredRate> rates = rounds.measure("Large", variants);
        LargeStreamResult.Costs ofSmall = costs(small);
        LargeStreamResult.Costs ofLarge = costs(large);
        return LargeStreamResult.of(events, rates, ofSmall, ofLarge);
    }

    private PublishVariant publish(String name, String size) {
        return PublishVariant.namedAsync(name, context.publishLoad(context.stream(size), 1), CALLERS);
    }

    private StreamLog create(String size, long count) throws SQLException {
        String stream = context.stream(size);
        context.eventSql().createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        long start = context.clock().nanos();
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
                context.progress()
                        .printf(
                                Locale.ROOT,
                                "Large: %,d of %,d events stored in %s%n",
                                count / PARTITIONS * (p + 1),
                                count,
                                stream);
            }
        } catch (ExecutionException e) {
            throw new IllegalStateException("Filling " + stream + " failed: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while filling " + stream, e);
        }
        context.checkStopped();
        context.progress()
                .printf(
                        Locale.ROOT,
                        "Large: %s filled in %.0f s%n",
                        stream,
                        (context.clock().nanos() - start) / 1e9);
        return log;
    }

    private static LargeStreamResult.Costs costs(StreamLog log) throws SQLException {
        return new LargeStreamResult.Costs(
                log.heads(), log.tables(), log.bytes(), log.appendCost(STATEMENTS), log.fetchCost(STATEMENTS));
    }
}
