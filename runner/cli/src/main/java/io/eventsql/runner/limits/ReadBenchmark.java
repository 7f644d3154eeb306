package io.eventsql.runner.limits;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.phases.ReadPass;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Measures how fast one partition is read in pages of several sizes: by calls of {@code EventSql.read}, with and without
 * planner statistics of its table, and by a consumer.
 */
final class ReadBenchmark extends LimitsBenchmark {
    private static final String NEVER_ANALYZED = "never_analyzed";
    private static final String ANALYZED = "analyzed";
    private static final List<Integer> PAGE_EVENTS = List.of(10, 100, 1_000, 5_000, 10_000);
    private static final List<Integer> CONSUMER_PAGE_EVENTS = List.of(10, 100, 1_000);

    /** From this size on, fixed costs per page are negligible, so that rates should differ little. */
    private static final int LARGE_PAGE_EVENTS = 1_000;

    private static final int FILL_CALL_EVENTS = 1_000;

    /** The value of {@code pg_class.reltuples} before the first VACUUM or ANALYZE. */
    private static final double UNKNOWN = -1;

    private final String stream;
    private final int events;
    private int consumers;

    ReadBenchmark(LimitsContext context) {
        super(context, LimitsPart.READ, "a partition from its start, by page size; " + context.roundsText());
        this.stream = context.stream("read");
        this.events = context.number(LimitsNumber.READ_EVENTS);
    }

    @Override
    void measure() throws SQLException {
        // One segment holds all events, because autovacuum is disabled only for existing segments.
        LoadedStream loaded = context.loadedStream()
                .withPartitions(1)
                .with("segment_events", String.valueOf(Math.max(StreamSpec.DEFAULT_SEGMENT_SIZE, events)));
        StreamLog log;
        try (StreamLoad load = StreamLoad.create(context, stream, loaded)) {
            log = new StreamLog(context.dataSource(), stream);
            log.disableAutovacuum();
            context.show("Read: publishing %d events", events);
            load.send(PhaseSpec.ofCallers("fill", 1, true, FILL_CALL_EVENTS), events);
        }

        part.add("events", Figure.of(events));
        List<MeasuredRate> without = read(NEVER_ANALYZED, log);
        requireAnalyzed(false, log);
        log.analyze();
        List<MeasuredRate> with = read(ANALYZED, log);
        for (int i = 0; i < with.size(); i++) {
            part.add(
                    "pages",
                    with.get(i).name(),
                    NEVER_ANALYZED + " / " + ANALYZED,
                    without.get(i).perSecond().ratioTo(with.get(i).perSecond()));
        }
        new InterleavedRounds(context)
                .measure(
                        "Read by consumers",
                        CONSUMER_PAGE_EVENTS.stream().map(this::consumer).toList())
                .forEach(rate -> rate.addTo(part, "consumers"));
    }

    /** Reads in one state of the tables. */
    private List<MeasuredRate> read(String state, StreamLog log) throws SQLException {
        for (StreamLog.SegmentStatistics segment : requireAnalyzed(state.equals(ANALYZED), log)) {
            part.add("segment", segment.segment() + ", " + state, "reltuples", Figure.of(segment.reltuples()))
                    .add("segment", segment.segment() + ", " + state, "bytes", Figure.of(segment.bytes(), "bytes"));
        }
        int shard = context.eventSql().shards().getFirst().number();
        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Read, " + state,
                        PAGE_EVENTS.stream()
                                .map(size -> new Variant("pages of " + size, time -> readPages(shard, size, time)))
                                .toList());
        for (MeasuredRate rate : rates) {
            part.add("pages", rate.name(), state, rate.perSecond())
                    .add("pages", rate.name(), "events_per_call", Figure.of(rate.eventsPerCall()));
        }
        double fastest = IntStream.range(0, rates.size())
                .mapToDouble(i -> rates.get(i).perSecond().value())
                .max()
                .orElseThrow();
        double slowestLarge = IntStream.range(0, rates.size())
                .filter(i -> PAGE_EVENTS.get(i) >= LARGE_PAGE_EVENTS)
                .mapToDouble(i -> rates.get(i).perSecond().value())
                .min()
                .orElseThrow();
        part.add(
                "slowest page size of at least " + LARGE_PAGE_EVENTS + " / fastest",
                state,
                "value",
                Figure.of(slowestLarge / fastest));
        return rates;
    }

    private Variant consumer(int pageEvents) {
        LoadedStream loaded = LoadedStream.ofLibrary().with("page_events", String.valueOf(pageEvents));
        return new Variant("consumer, pages of " + pageEvents, time -> {
            try (Driver driver = context.openDriver(loaded)) {
                return consume(driver, pageEvents, time);
            }
        });
    }

    /** Reads with one new consumer after the other until the time is up, each from its first page to the last one. */
    private MeasuredInterval consume(Driver driver, int pageEvents, Duration time) {
        long endNanos = context.clock().nanos() + time.toNanos();
        Problems problems = new Problems();
        MeasuredInterval all = new MeasuredInterval(0, 0, 0);
        do {
            String name = "limits_" + pageEvents + "_" + consumers++;
            try (ReadPass pass = ReadPass.start(driver, stream, name, events, problems)) {
                pass.await(context.stop()::isRaised);
                context.checkStopped();
                if (pass.events() != events || !problems.all().isEmpty()) {
                    throw new IllegalStateException(
                            "Pages of " + pageEvents + ": read " + pass.events() + " events; " + problems.all());
                }
                all = all.plus(pass.events(), pass.calls(), pass.nanos());
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new IllegalStateException("Pages of " + pageEvents + " failed: " + e.getMessage(), e);
            }
        } while (context.clock().nanos() < endNanos);
        return all;
    }

    /** Reads in pages of a fixed size, restarting from the beginning until the time is up. */
    private MeasuredInterval readPages(int shard, int pageEvents, Duration time) {
        long startNanos = context.clock().nanos();
        long endNanos = startNanos + time.toNanos();
        long read = 0;
        long calls = 0;
        long now = startNanos;
        long offset = 0;
        while (now < endNanos && !context.stop().isRaised()) {
            int page = readPage(new EventPosition(stream, shard, 0, offset), pageEvents);
            read += page;
            calls++;
            offset = offset + page >= events ? 0 : offset + page;
            now = context.clock().nanos();
        }
        return new MeasuredInterval(read, calls, now - startNanos);
    }

    /** Reads the page at a position. Returns its number of events. */
    private int readPage(EventPosition from, int pageEvents) {
        List<StoredEvent> page = context.eventSql().read(from, pageEvents);
        if (page.isEmpty()
                || page.getFirst().offset() != from.offset()
                || page.getLast().offset() != from.offset() + page.size() - 1) {
            throw new IllegalStateException("Unexpected page at " + from + ": " + page.size() + " events"
                    + (page.isEmpty() ? "" : " from " + page.getFirst().position()));
        }
        return page.size();
    }

    private static List<StreamLog.SegmentStatistics> requireAnalyzed(boolean analyzed, StreamLog log)
            throws SQLException {
        List<StreamLog.SegmentStatistics> segments = log.statistics();
        for (StreamLog.SegmentStatistics segment : segments) {
            boolean known = segment.reltuples() != UNKNOWN || segment.analyzed() > 0;
            if (known != analyzed) {
                throw new IllegalStateException(
                        (analyzed ? "Table was not analyzed: " : "Table was analyzed unexpectedly: ") + segment);
            }
        }
        if (segments.isEmpty()) {
            throw new IllegalStateException("No table contains the published events");
        }
        return segments;
    }
}
