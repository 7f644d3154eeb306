package io.eventsql.spring.internal.actuate;

import io.eventsql.BufferState;
import io.eventsql.ConsumerControl;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.ShardInfo;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.InvalidEndpointRequestException;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;

/**
 * Lists streams and consumers; pauses, resumes, seeks and redrives a consumer, in whichever process it runs. Never shows
 * payloads. Like every endpoint, it is exposed over HTTP only if the application's configuration does so.
 *
 * <p>{@code GET /actuator/eventsql}, {@code GET …/{stream}/{consumer}}, {@code GET …/{stream}/{consumer}/parked?max=},
 * {@code POST …/{stream}/{consumer}/{pause|resume|seek|redrive}}.
 */
@Endpoint(id = "eventsql")
public final class EventSqlEndpoint {
    private static final int DEFAULT_PARKED_EVENTS = 100;

    private final EventSql eventSql;

    public EventSqlEndpoint(EventSql eventSql) {
        this.eventSql = eventSql;
    }

    /** Streams, shards and the consumers of this process. */
    public record Overview(List<StreamSpec> streams, List<Shard> shards, List<Member> consumers)
            implements OperationResponseBody {}

    /**
     * A shard.
     *
     * @param connected whether it has been available since this process was started
     * @param buffer this process's publish buffer for it
     */
    public record Shard(int number, String name, boolean connected, BufferState buffer) {}

    /** A consumer's member in this process. */
    public record Member(String stream, String consumer, boolean running) {}

    /**
     * A consumer of any process.
     *
     * @param lag number of stored events that it has not handled yet
     */
    public record Consumer(String stream, String consumer, long lag, List<PartitionState> partitions)
            implements OperationResponseBody {}

    /** Parked events and dead letters of a consumer. */
    public record ParkedEvents(List<ParkedEventEntry> parkedEvents) implements OperationResponseBody {}

    /** A parked event or dead letter without its payload; see {@link ParkedEvent}. */
    public record ParkedEventEntry(
            EventPosition position,
            @Nullable String key,
            boolean parked,
            @Nullable EventPosition deadLetter,
            String error,
            int attempts,
            Instant parkedAt,
            boolean redriving) {
        private static ParkedEventEntry of(ParkedEvent event) {
            return new ParkedEventEntry(
                    event.event().position(),
                    event.event().key(),
                    !event.isDeadLettered(),
                    event.deadLetter(),
                    event.error(),
                    event.attempts(),
                    event.parkedAt(),
                    event.redriving());
        }
    }

    /**
     * The result of an operation.
     *
     * @param events number of events it concerns, if known
     */
    public record Result(String operation, @Nullable Long events) implements OperationResponseBody {}

    /** An operation on a consumer. */
    public enum Operation {
        PAUSE,
        RESUME,
        SEEK,
        REDRIVE
    }

    @ReadOperation
    public Overview overview() {
        Set<Integer> connected =
                eventSql.shards().stream().map(ShardInfo::number).collect(Collectors.toSet());
        List<Shard> shards = eventSql.buffers().stream()
                .map(buffer -> new Shard(buffer.shard(), buffer.name(), connected.contains(buffer.shard()), buffer))
                .toList();
        List<Member> members = eventSql.subscriptions().stream()
                .map(s -> new Member(s.spec().stream(), s.spec().name(), s.isRunning()))
                .sorted(Comparator.comparing(Member::stream).thenComparing(Member::consumer))
                .toList();
        return new Overview(eventSql.streams(), shards, members);
    }

    /** Returns a consumer; {@code null}, so 404, if the stream does not exist or the consumer was never started. */
    @ReadOperation
    public @Nullable Consumer consumer(@Selector String stream, @Selector String consumer) {
        try {
            List<PartitionState> partitions = control(stream, consumer).state();
            return partitions.isEmpty()
                    ? null
                    : new Consumer(
                            stream,
                            consumer,
                            partitions.stream().mapToLong(PartitionState::lag).sum(),
                            partitions);
        } catch (UnknownStreamException e) {
            return null;
        }
    }

    /**
     * Returns the parked events and dead letters of a consumer.
     *
     * @param part {@code parked}; 404 for anything else
     * @param max maximum number of events; {@value #DEFAULT_PARKED_EVENTS} by default
     */
    @ReadOperation
    public @Nullable ParkedEvents parkedEvents(
            @Selector String stream, @Selector String consumer, @Selector String part, @Nullable Integer max) {
        if (!part.equals("parked")) {
            return null;
        }
        try {
            int limit = max == null ? DEFAULT_PARKED_EVENTS : max;
            return new ParkedEvents(control(stream, consumer).parkedEvents(limit).stream()
                    .map(ParkedEventEntry::of)
                    .toList());
        } catch (UnknownStreamException e) {
            return null;
        } catch (InvalidInputException e) {
            throw invalid(e.getMessage(), e);
        }
    }

    /**
     * Changes a consumer.
     *
     * @param to for {@code seek}: {@code earliest}, {@code latest}, a time such as {@code 2026-01-31T12:00:00Z}, or an offset
     * @param shard with {@code partition}, seeks only in that partition, and {@code to} must be an offset; for {@code
     *     redrive}, with {@code partition} and {@code offset}, redrives only that event and its key
     */
    @WriteOperation
    public Result change(
            @Selector String stream,
            @Selector String consumer,
            @Selector Operation operation,
            @Nullable String to,
            @Nullable Integer shard,
            @Nullable Integer partition,
            @Nullable Long offset) {
        try {
            ConsumerControl control = control(stream, consumer);
            Long events = null;
            switch (operation) {
                case PAUSE -> control.pause();
                case RESUME -> control.resume();
                case SEEK -> seek(control, stream, to, shard, partition);
                case REDRIVE -> events = redrive(control, stream, shard, partition, offset);
            }
            return new Result(operation.name().toLowerCase(Locale.ROOT), events);
        } catch (UnknownStreamException | InvalidInputException e) {
            throw invalid(e.getMessage(), e);
        }
    }

    private static void seek(
            ConsumerControl control,
            String stream,
            @Nullable String to,
            @Nullable Integer shard,
            @Nullable Integer partition) {
        if (to == null) {
            throw invalid("\"to\" must be earliest, latest, a time, or an offset", null);
        }
        StartPosition position = position(to);
        if (shard == null && partition == null) {
            control.seek(position);
        } else if (shard == null || partition == null || position.offset() < 0) {
            throw invalid("seeking in one partition needs \"shard\", \"partition\" and an offset as \"to\"", null);
        } else {
            control.seek(new EventPosition(stream, shard, partition, position.offset()));
        }
    }

    private static StartPosition position(String to) {
        if (to.equalsIgnoreCase("earliest")) {
            return StartPosition.EARLIEST;
        }
        if (to.equalsIgnoreCase("latest")) {
            return StartPosition.LATEST;
        }
        try {
            return to.matches("\\d{1,18}")
                    ? StartPosition.atOffset(Long.parseLong(to))
                    : StartPosition.at(Instant.parse(to));
        } catch (DateTimeParseException e) {
            throw invalid(
                    "\"to\" must be earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset, but is " + to,
                    e);
        }
    }

    private static long redrive(
            ConsumerControl control,
            String stream,
            @Nullable Integer shard,
            @Nullable Integer partition,
            @Nullable Long offset) {
        if (shard == null && partition == null && offset == null) {
            return control.redrive();
        }
        if (shard == null || partition == null || offset == null) {
            throw invalid("redriving one event needs \"shard\", \"partition\" and \"offset\"", null);
        }
        return control.redrive(List.of(new EventPosition(stream, shard, partition, offset)));
    }

    private ConsumerControl control(String stream, String consumer) {
        return eventSql.consumer(stream, consumer);
    }

    private static InvalidEndpointRequestException invalid(@Nullable String reason, @Nullable Throwable cause) {
        String text = String.valueOf(reason);
        return cause == null
                ? new InvalidEndpointRequestException(text, text)
                : new InvalidEndpointRequestException(text, text, cause);
    }
}
