package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.ScheduleId;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.ScheduledTable.Scheduled;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamPendingException;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Schedules events on the shards to which they are routed, on the caller's thread, with a commit for each. Retries until the
 * deadline; as long as an attempt is in doubt, on the same shard and marked as repeated. Thread-safe.
 */
final class EventScheduler {
    private final StreamRegistry streams;
    private final Router router;
    private final EventValidator validator;
    private final Settings settings;
    private final ScheduleListener listener;
    private volatile boolean closed;

    EventScheduler(
            StreamRegistry streams,
            Router router,
            EventValidator validator,
            Settings settings,
            ScheduleListener listener) {
        this.streams = streams;
        this.router = router;
        this.validator = validator;
        this.settings = settings;
        this.listener = listener;
    }

    /**
     * Schedules an event.
     *
     * @param isRepeated whether an earlier call may have done so
     */
    void schedule(String stream, Event event, UUID id, boolean isRepeated) {
        if (closed) {
            throw new EventNotStoredException("The event was not scheduled: the publisher is closed", null);
        }
        Instant due = ScheduleId.due(id);
        Valid valid = validator.validate(stream, event);
        StreamSpec spec = streams.require(stream);
        int routingHash = ThreadLocalRandom.current().nextInt();
        Scheduled scheduled =
                new Scheduled(id, due, spec.name(), valid.key(), valid.value(), valid.headers(), routingHash);
        new Call(spec, valid, scheduled, isRepeated).run();
    }

    /** Rejects further calls. */
    void close() {
        closed = true;
    }

    /** One call, used by one thread. */
    private final class Call {
        private final StreamSpec stream;
        private final Valid event;
        private final Scheduled scheduled;
        private final boolean isRepeated;
        private final long deadline =
                System.nanoTime() + settings.publishTimeout().toNanos();
        private final FailureSeries failures = new FailureSeries();
        /** Where an attempt is in doubt. */
        private @Nullable Shard doubtful;

        Call(StreamSpec stream, Valid event, Scheduled scheduled, boolean isRepeated) {
            this.stream = stream;
            this.event = event;
            this.scheduled = scheduled;
            this.isRepeated = isRepeated;
        }

        void run() {
            while (true) {
                Shard shard = doubtful == null ? route() : doubtful;
                try {
                    listener.scheduled(shard, TimeUnit.MICROSECONDS.toNanos(attempt(shard)));
                    return;
                } catch (SQLException e) {
                    failed(shard, e);
                }
            }
        }

        /** What may be scheduled already is sought where it would be. */
        private Shard route() {
            return isRepeated && event.key() == null
                    ? router.route(stream, scheduled.id())
                    : router.route(stream, event).shard();
        }

        private long attempt(Shard shard) throws SQLException {
            long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
            Database database = shard.require().withNetworkTimeout(Duration.ofMillis(left));
            String incarnation = shard.incarnation();
            ensureStream(shard);
            try {
                return database.replicatedCall(c -> shard.tables()
                        .outbox()
                        .scheduled()
                        .schedule(c, scheduled, isRepeated || doubtful != null, incarnation));
            } catch (SQLException e) {
                shard.recheckAfter(e, incarnation);
                throw e;
            }
        }

        /** A shard that was not available when the stream was created gets it as it is on the others now. */
        private void ensureStream(Shard shard) throws SQLException {
            try {
                if (shard.streams().findId(streams.require(stream.name())).isEmpty()) {
                    streams.forget(stream.name());
                    shard.streams().ensure(streams.require(stream.name()));
                }
            } catch (UnknownStreamException e) {
                throw e;
            } catch (EventSqlException e) { // another shard may have the stream, and is unavailable
                throw new StreamPendingException(e);
            }
        }

        /** Returns if the call is to be repeated. */
        private void failed(Shard shard, SQLException e) {
            ErrorKind kind = SqlErrors.classify(e);
            if (kind == ErrorKind.IN_DOUBT) {
                doubtful = shard;
            } else if (kind == ErrorKind.NOT_SENT) {
                shard.setHealthy(false); // an event without a key goes to another one
            }
            switch (SqlErrors.state(e)) {
                case SqlErrors.MAY_BE_MOVED -> throw unknown(e);
                case SqlErrors.NO_PARTITION -> {
                    shard.streams().forget(stream.name()); // the next attempt finds out whether it was deleted
                    streams.forget(stream.name());
                }
                default -> {}
            }
            boolean isPermanent = kind == ErrorKind.CONTENT
                    || (kind == ErrorKind.PROTOCOL
                            && !SqlErrors.isOtherIncarnation(e)
                            && !SqlErrors.state(e).equals(SqlErrors.NO_PARTITION));
            long pauseMs = failures.add(SqlErrors.message(e)).retryMs();
            if (isPermanent || deadline - System.nanoTime() <= TimeUnit.MILLISECONDS.toNanos(pauseMs)) {
                throw doubtful == null
                        ? new EventNotStoredException(
                                "The event was not scheduled on " + shard + ": " + SqlErrors.message(e), e)
                        : unknown(e);
            }
            try {
                TimeUnit.MILLISECONDS.sleep(pauseMs);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw unknown(interrupted);
            }
        }

        private EventSqlException unknown(Exception e) {
            return new EventOutcomeUnknownException(
                    "Whether event " + scheduled.id() + " was scheduled could not be determined: "
                            + SqlErrors.message(e),
                    e);
        }
    }

    /** Rejects ids and times that cannot be scheduled. */
    static UUID requireId(UUID id) {
        if (ScheduleId.due(id).isAfter(Instant.now().plus(ScheduleId.AHEAD_MAX))) {
            throw new InvalidInputException("id", "is due more than " + ScheduleId.AHEAD_MAX.toDays() + " days ahead");
        }
        return id;
    }
}
