package io.eventsql.runner.limits;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;

/** Appends with COPY on one connection per partition, concurrently. */
final class CopyVariant {
    /** Rows per COPY and transaction. */
    static final int EVENTS_PER_COMMIT = 5_000;

    private final DataSource dataSource;
    private final List<SegmentCopy> segments;
    private final LoadClock clock;
    private final StopSignal stop;

    /** @param segments one per connection */
    CopyVariant(LimitsContext context, List<SegmentCopy> segments) {
        this.dataSource = context.dataSource();
        this.segments = List.copyOf(segments);
        this.clock = context.clock();
        this.stop = context.stop();
    }

    Variant variant() {
        return new Variant(
                "COPY BINARY, " + segments.size() + (segments.size() == 1 ? " connection" : " connections"), this::run);
    }

    private MeasuredInterval run(Duration time) throws SQLException {
        List<Connection> connections = new ArrayList<>();
        try {
            for (int i = 0; i < segments.size(); i++) {
                connections.add(dataSource.getConnection());
            }
            return run(connections, time);
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
        }
    }

    private MeasuredInterval run(List<Connection> connections, Duration time) throws SQLException {
        long start = clock.nanos();
        long end = start + time.toNanos();
        List<Future<Copied>> running = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(connections.size())) {
            for (int i = 0; i < connections.size(); i++) {
                Connection connection = connections.get(i);
                SegmentCopy segment = segments.get(i);
                running.add(threads.submit(() -> copyUntil(end, connection, segment)));
            }
        }
        long commits = 0;
        long last = start;
        for (Future<Copied> future : running) {
            Copied copied = awaitResult(future);
            commits += copied.commits;
            last = Math.max(last, copied.lastCommitNanos);
        }
        return new MeasuredInterval(commits * EVENTS_PER_COMMIT, commits, last - start);
    }

    private record Copied(long commits, long lastCommitNanos) {}

    private Copied copyUntil(long endNanos, Connection connection, SegmentCopy segment) throws SQLException {
        long commits = 0;
        long now = clock.nanos();
        while (now < endNanos && !stop.isRaised()) {
            segment.copy(connection, EVENTS_PER_COMMIT);
            commits++;
            now = clock.nanos();
        }
        return new Copied(commits, now);
    }

    private static Copied awaitResult(Future<Copied> future) throws SQLException {
        try {
            return future.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof SQLException rejected) {
                throw new SQLException("COPY failed: " + rejected.getMessage(), rejected.getSQLState(), e);
            }
            throw new IllegalStateException("COPY failed: " + e.getCause(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while COPY ran", e);
        }
    }
}
