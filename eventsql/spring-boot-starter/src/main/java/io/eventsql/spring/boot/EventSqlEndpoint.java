package io.eventsql.spring.boot;

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
 * Shows streams and consumers, and pauses, resumes, moves and redrives a consumer, wherever it runs. Payloads are never
 * shown. As every endpoint it is not exposed over HTTP unless the application says so.
 *
 * <p>{@code GET /actuator/eventsql}, {@code GET …/{stream}/{consumer}}, {@code GET …/{stream}/{consumer}/parked?max=},
 * {@code POST …/{stream}/{consumer}/{pause|resume|seek|redrive}}.
 */
@Endpoint(id = "eventsql")
public final class EventSqlEndpoint {
    private static final int SET_ASIDE_SHOWN = 100;

    private final EventSql eventSql;

    public EventSqlEndpoint(EventSql eventSql) {
        this.eventSql = eventSql;
    }

    /** Everything this process knows. */
    public record Overview(List<StreamSpec> streams, List<Shard> shards, List<Member> consumers)
            implements OperationResponseBody {}

    /**
     * A shard.
     *
     * @param answered whether it has, since this process was started
     * @param buffer what waits in this process for it
     */
    public record Shard(int number, String name, boolean answered, BufferState buffer) {}

    /** A consumer's member in this process. */
    public record Member(String stream, String consumer, boolean running) {}

    /**
     * A consumer, wherever it runs.
     *
     * @param lag how many stored events it has not handled yet
     */
    public record Consumer(String stream, String consumer, long lag, List<PartitionState> partitions)
            implements OperationResponseBody {}

    /** Events that a consumer could not handle. */
    public record ParkedEvents(List<ParkedEventEntry> events) implements OperationResponseBody {}

    /** One of them, without its payload; see {@link ParkedEvent}. */
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
     * What was done.
     *
     * @param events how many events it concerns, where that is known
     */
    public record Done(String operation, @Nullable Long events) implements OperationResponseBody {}

    /** What can be done to a consumer. */
    public enum Operation {
        PAUSE,
        RESUME,
        SEEK,
        REDRIVE
    }

    @ReadOperation
    public Overview overview() {
        Set<Integer> answered =
                eventSql.shards().stream().map(ShardInfo::number).collect(Collectors.toSet());
        List<Shard> shards = eventSql.buffers().stream()
                .map(buffer -> new Shard(buffer.shard(), buffer.name(), answered.contains(buffer.shard()), buffer))
                .toList();
        List<Member> members = eventSql.subscriptions().stream()
                .map(s -> new Member(s.spec().stream(), s.spec().name(), s.isRunning()))
                .sorted(Comparator.comparing(Member::stream).thenComparing(Member::consumer))
                .toList();
        return new Overview(eventSql.streams(), shards, members);
    }

    /** A consumer by name; {@code null}, so not found, if there is no such stream, or the consumer was never started. */
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
     * What the consumer could not handle.
     *
     * @param part {@code parked}; anything else is not found
     * @param max how many at most; {@value #SET_ASIDE_SHOWN} by default
     */
    @ReadOperation
    public @Nullable ParkedEvents parkedEvents(
            @Selector String stream, @Selector String consumer, @Selector String part, @Nullable Integer max) {
        if (!part.equals("parked")) {
            return null;
        }
        try {
            int limit = max == null ? SET_ASIDE_SHOWN : max;
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
     * @param to for {@code seek}: {@code earliest}, {@code latest}, a time as {@code 2026-01-31T12:00:00Z}, or an offset
     * @param shard with {@code partition}, moves only this one, and {@code to} must be an offset; for {@code redrive}, with
     *     {@code partition} and {@code offset}, redrives only that event and with it its key
     */
    @WriteOperation
    public Done change(
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
            return new Done(operation.name().toLowerCase(Locale.ROOT), events);
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
            throw invalid("one partition is moved by \"shard\", \"partition\", and an offset as \"to\"", null);
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
                    "\"to\" must be earliest, latest, a time as 2026-01-31T12:00:00Z, or an offset, but is " + to, e);
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
            throw invalid("one event is named by \"shard\", \"partition\" and \"offset\"", null);
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
