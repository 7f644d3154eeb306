package io.eventsql.spring.internal.actuate;

import io.eventsql.BufferState;
import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerOverview;
import io.eventsql.ConsumerStatus;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Growth;
import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.ShardInfo;
import io.eventsql.ShardMove;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;

/**
 * Lists streams and consumers; gives streams more partitions; pauses, resumes, seeks and redrives a consumer, in whichever process it runs. Never shows
 * payloads. A rejected request is answered with its reason. Like every endpoint, it is exposed over HTTP only if the application's configuration does so.
 *
 * <p>{@code GET /actuator/eventsql}, {@code GET …/consumers}, {@code GET …/{stream}/{consumer}}, {@code GET …/{stream}/{consumer}/parked?max=},
 * {@code POST …/{stream}/{consumer}/{pause|resume|seek|redrive}}, {@code POST …/{stream}/{preview-growth|grow|cancel-growth}},
 * {@code POST …/{preview-shards|move-shards|cancel-shard-move|remove-shard}}.
 */
@Endpoint(id = "eventsql")
public final class EventSqlEndpoint {
    private static final Logger LOG = LoggerFactory.getLogger(EventSqlEndpoint.class);
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

    /**
     * All consumers of all streams, wherever they run.
     *
     * @param unavailableShards why shards could not be read, by name
     */
    public record AllConsumers(List<ListedConsumer> consumers, Map<String, String> unavailableShards)
            implements OperationResponseBody {}

    /**
     * A consumer with its members and its last error; see {@link ConsumerStatus}.
     *
     * @param behindMs age of the oldest event that it has not handled
     * @param partitions number of partitions by status
     */
    public record ListedConsumer(
            String stream,
            String consumer,
            List<String> members,
            long lag,
            long behindMs,
            Map<PartitionState.Status, Long> partitions,
            long parkedEvents,
            @Nullable String lastError,
            @Nullable Instant lastErrorAt) {
        private static ListedConsumer of(ConsumerStatus status) {
            Map<PartitionState.Status, Long> partitions = status.partitions().stream()
                    .collect(Collectors.groupingBy(
                            PartitionState::status,
                            () -> new EnumMap<>(PartitionState.Status.class),
                            Collectors.counting()));
            return new ListedConsumer(
                    status.stream(),
                    status.consumer(),
                    status.members(),
                    status.lag(),
                    status.behind().toMillis(),
                    partitions,
                    status.parkedEvents(),
                    status.lastError(),
                    status.lastErrorAt());
        }
    }

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
     * Why a request was rejected or failed.
     *
     * @param error what is wrong, and what to do
     */
    public record Problem(String error) implements OperationResponseBody {}

    /**
     * The result of an operation.
     *
     * @param events number of events it concerns, if known
     */
    public record Result(String operation, @Nullable Long events) implements OperationResponseBody {}

    /** An operation on a consumer. */
    private enum Operation {
        PAUSE,
        RESUME,
        SEEK,
        REDRIVE
    }

    @ReadOperation
    public WebEndpointResponse<OperationResponseBody> overview() {
        return response(() -> {
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
        });
    }

    /**
     * Returns all consumers of all streams.
     *
     * @param list {@code consumers}; 404 for anything else
     */
    @ReadOperation
    public WebEndpointResponse<OperationResponseBody> consumers(@Selector String list) {
        return response(() -> {
            if (!list.equals("consumers")) {
                throw new NoSuchElementException("There is no list of " + list + ", only of consumers");
            }
            ConsumerOverview overview = eventSql.consumers();
            return new AllConsumers(
                    overview.consumers().stream().map(ListedConsumer::of).toList(), overview.unavailableShards());
        });
    }

    /** Returns a consumer; 404 if the stream does not exist or the consumer was never started. */
    @ReadOperation
    public WebEndpointResponse<OperationResponseBody> consumer(@Selector String stream, @Selector String consumer) {
        return response(() -> {
            List<PartitionState> partitions =
                    eventSql.consumer(stream, consumer).state();
            if (partitions.isEmpty()) {
                throw unknownConsumer(stream, consumer);
            }
            long lag = partitions.stream().mapToLong(PartitionState::lag).sum();
            return new Consumer(stream, consumer, lag, partitions);
        });
    }

    /**
     * Returns the parked events and dead letters of a consumer.
     *
     * @param part {@code parked}; 404 for anything else
     * @param max maximum number of events; {@value #DEFAULT_PARKED_EVENTS} by default
     */
    @ReadOperation
    public WebEndpointResponse<OperationResponseBody> parkedEvents(
            @Selector String stream, @Selector String consumer, @Selector String part, @Nullable String max) {
        return response(() -> {
            if (!part.equals("parked")) {
                throw new NoSuchElementException("There is no " + part + " of a consumer, only parked");
            }
            @Nullable Integer limit = integer("max", max);
            return new ParkedEvents(
                    control(stream, consumer).parkedEvents(limit == null ? DEFAULT_PARKED_EVENTS : limit).stream()
                            .map(ParkedEventEntry::of)
                            .toList());
        });
    }

    /**
     * Changes a consumer.
     *
     * @param operation {@code pause}, {@code resume}, {@code seek} or {@code redrive}
     * @param to for {@code seek}: {@code earliest}, {@code latest}, a time such as {@code 2026-01-31T12:00:00Z}, or an offset
     * @param shard with {@code partition}, seeks only in that partition, and {@code to} must be an offset; for {@code
     *     redrive}, with {@code partition} and {@code offset}, redrives only that event and its key; rejected for {@code
     *     pause} and {@code resume}, which apply to all partitions
     */
    @WriteOperation
    public WebEndpointResponse<OperationResponseBody> change(
            @Selector String stream,
            @Selector String consumer,
            @Selector String operation,
            @Nullable String to,
            @Nullable String shard,
            @Nullable String partition,
            @Nullable String offset) {
        return response(() -> {
            Place place = new Place(
                    stream, integer("shard", shard), integer("partition", partition), number("offset", offset));
            Operation requested = operation(operation);
            if (requested == Operation.PAUSE || requested == Operation.RESUME) {
                requireNoPlace(operation, place);
            }
            ConsumerControl control = control(stream, consumer);
            Long events = null;
            switch (requested) {
                case PAUSE -> control.pause();
                case RESUME -> control.resume();
                case SEEK -> seek(control, to, place);
                case REDRIVE -> events = redrive(control, place);
            }
            return new Result(requested.name().toLowerCase(Locale.ROOT), events);
        });
    }

    /** The growth of a stream; see {@link Growth}. */
    public record StreamGrowth(Growth growth) implements OperationResponseBody {}

    /**
     * Gives a stream more partitions.
     *
     * @param operation {@code preview-growth}, which changes nothing, {@code grow}, or {@code cancel-growth}, which removes what
     *     an incomplete growth has prepared
     * @param partitions the number of partitions on each shard; not for {@code cancel-growth}
     */
    @WriteOperation
    public WebEndpointResponse<OperationResponseBody> grow(
            @Selector String stream, @Selector String operation, @Nullable String partitions) {
        return response(() -> {
            if (operation.equals("cancel-growth")) {
                eventSql.cancelGrowth(stream);
                return new Result(operation, null);
            }
            @Nullable Integer number = integer("partitions", partitions);
            if (number == null) {
                throw new InvalidInputException("partitions", "must be given: the number of partitions on each shard");
            }
            return switch (operation) {
                case "preview-growth" -> new StreamGrowth(eventSql.previewGrowth(stream, number));
                case "grow" -> new StreamGrowth(eventSql.grow(stream, number));
                default ->
                    throw new InvalidInputException(
                            "operation", "must be preview-growth, grow or cancel-growth, but is " + operation);
            };
        });
    }

    /** A move of keys between shards; see {@link ShardMove}. */
    public record KeyMove(ShardMove move) implements OperationResponseBody {}

    /**
     * Moves keys between shards.
     *
     * @param operation {@code preview-shards}, which changes nothing, {@code move-shards}, {@code cancel-shard-move}, or {@code
     *     remove-shard}
     * @param shards the numbers of the shards that keys are to belong to, separated by commas; for {@code remove-shard} that of the
     *     shard; not for {@code cancel-shard-move}
     */
    @WriteOperation
    public WebEndpointResponse<OperationResponseBody> moveShards(@Selector String operation, @Nullable String shards) {
        return response(() -> {
            switch (operation) {
                case "cancel-shard-move" -> eventSql.cancelShardMove();
                case "remove-shard" -> {
                    List<Integer> numbers = integers("shards", shards);
                    if (numbers.size() != 1) {
                        throw new InvalidInputException("shards", "must be the number of one shard");
                    }
                    eventSql.removeShard(numbers.getFirst());
                }
                case "preview-shards" -> {
                    return new KeyMove(eventSql.previewShards(integers("shards", shards)));
                }
                case "move-shards" -> {
                    return new KeyMove(eventSql.moveShards(integers("shards", shards)));
                }
                default ->
                    throw new InvalidInputException(
                            "operation",
                            "must be preview-shards, move-shards, cancel-shard-move or remove-shard, but is "
                                    + operation);
            }
            return new Result(operation, null);
        });
    }

    private static List<Integer> integers(String field, @Nullable String text) {
        if (text == null) {
            throw new InvalidInputException(field, "must be given: numbers of shards, separated by commas");
        }
        List<Integer> numbers = new ArrayList<>();
        for (String part : text.split(",", -1)) {
            numbers.add(Objects.requireNonNull(integer(field, part.strip())));
        }
        return numbers;
    }

    /** Where an operation applies, as far as the request says. */
    private record Place(
            String stream,
            @Nullable Integer shard,
            @Nullable Integer partition,
            @Nullable Long offset) {}

    /** A request for one partition must not change all of them. */
    private static void requireNoPlace(String operation, Place place) {
        if (place.shard() != null || place.partition() != null || place.offset() != null) {
            throw new InvalidInputException(
                    place.shard() != null ? "shard" : place.partition() != null ? "partition" : "offset",
                    "must not be given: " + operation + " applies to all partitions of the consumer");
        }
    }

    private static void seek(ConsumerControl control, @Nullable String to, Place place) {
        StartPosition position = position(to);
        if (place.shard() == null && place.partition() == null) {
            control.seek(position);
        } else if (place.shard() == null || place.partition() == null || position.offset() < 0) {
            throw new InvalidInputException(
                    "to", "must be an offset, with shard and partition, to seek in one partition");
        } else {
            control.seek(new EventPosition(place.stream(), place.shard(), place.partition(), position.offset()));
        }
    }

    private static StartPosition position(@Nullable String to) {
        String text = to == null ? "" : to;
        if (text.equalsIgnoreCase("earliest")) {
            return StartPosition.EARLIEST;
        }
        if (text.equalsIgnoreCase("latest")) {
            return StartPosition.LATEST;
        }
        try {
            return text.matches("\\d{1,18}")
                    ? StartPosition.atOffset(Long.parseLong(text))
                    : StartPosition.at(Instant.parse(text));
        } catch (DateTimeParseException e) {
            InvalidInputException invalid = invalidPosition(text);
            invalid.initCause(e);
            throw invalid;
        }
    }

    private static InvalidInputException invalidPosition(String to) {
        return new InvalidInputException(
                "to",
                "must be earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset, but is '" + to + "'");
    }

    private static long redrive(ConsumerControl control, Place place) {
        if (place.shard() == null && place.partition() == null && place.offset() == null) {
            return control.redrive();
        }
        if (place.shard() == null || place.partition() == null || place.offset() == null) {
            throw new InvalidInputException("redrive", "of one event needs shard, partition and offset");
        }
        return control.redrive(
                List.of(new EventPosition(place.stream(), place.shard(), place.partition(), place.offset())));
    }

    private static Operation operation(String name) {
        return Arrays.stream(Operation.values())
                .filter(operation -> operation.name().equalsIgnoreCase(name))
                .findFirst()
                .orElseThrow(() -> new InvalidInputException(
                        "operation", "must be pause, resume, seek or redrive, but is " + name));
    }

    private static @Nullable Integer integer(String name, @Nullable String text) {
        @Nullable Long number = number(name, text);
        if (number != null && number > Integer.MAX_VALUE) {
            throw new InvalidInputException(name, "must be at most " + Integer.MAX_VALUE + ", but is " + text);
        }
        return number == null ? null : number.intValue();
    }

    private static @Nullable Long number(String name, @Nullable String text) {
        if (text == null) {
            return null;
        }
        if (!text.matches("\\d{1,18}")) {
            throw new InvalidInputException(name, "must be a number, 0 or more, but is " + text);
        }
        return Long.valueOf(text);
    }

    /** Returns the control of a consumer that was started at least once. */
    private ConsumerControl control(String stream, String consumer) {
        ConsumerControl control = eventSql.consumer(stream, consumer);
        if (eventSql.positions(stream, consumer).isEmpty()) {
            throw unknownConsumer(stream, consumer);
        }
        return control;
    }

    private static NoSuchElementException unknownConsumer(String stream, String consumer) {
        return new NoSuchElementException("There is no consumer " + consumer + " of stream " + stream);
    }

    /** Spring Boot hides the texts of exceptions; here they say what to correct, and contain no payloads. */
    private static WebEndpointResponse<OperationResponseBody> response(Supplier<OperationResponseBody> call) {
        try {
            return new WebEndpointResponse<>(call.get());
        } catch (UnknownStreamException | NoSuchElementException e) {
            return problem(e, WebEndpointResponse.STATUS_NOT_FOUND);
        } catch (InvalidInputException e) {
            return problem(e, WebEndpointResponse.STATUS_BAD_REQUEST);
        } catch (EventSqlException e) {
            return problem(e, WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE);
        }
    }

    private static WebEndpointResponse<OperationResponseBody> problem(RuntimeException failure, int status) {
        LOG.debug("A request to the endpoint eventsql failed with status {}", status, failure);
        return new WebEndpointResponse<>(new Problem(String.valueOf(failure.getMessage())), status);
    }
}
