package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.PartitionMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Calls for tests without a database. */
final class TestCalls {
    static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(8);
    static final int EVENT_BYTES = 100;
    static final long FAR = TimeUnit.HOURS.toNanos(1);

    private static final Map<Integer, PartitionMap> MAPS = new ConcurrentHashMap<>();

    private TestCalls() {}

    /** Returns the map of a stream that has not grown, as a shard does: the same object each time. */
    static PartitionMap map(StreamSpec stream) {
        return MAPS.computeIfAbsent(stream.partitions(), partitions -> PartitionMap.first(1, partitions));
    }

    /** Returns how calls are routed on a shard that loses no slots. */
    static PublishQueue.CallRouting routing(Function<StreamSpec, PartitionMap> mapOf) {
        return step -> step.run(
                call -> {
                    call.reroute(mapOf.apply(call.stream()));
                    return List.of(call);
                },
                0);
    }

    /** A call and its outcome. */
    static final class Call {
        final CompletableFuture<EventPosition[]> outcome = new CompletableFuture<>();
        final PublishCall call;

        /** @param partitions one for each event, or {@link PublishCall#ANY_PARTITION} */
        Call(StreamSpec stream, int events, int[] partitions, long deadlineNanos) {
            this(stream, events, partitions, false, deadlineNanos);
        }

        Call(StreamSpec stream, PartitionMap map, int events, int[] partitions, long deadlineNanos) {
            this(stream, map, events, partitions, false, deadlineNanos);
        }

        Call(StreamSpec stream, int events, int[] partitions, boolean callerWaits, long deadlineNanos) {
            this(stream, map(stream), events, partitions, callerWaits, deadlineNanos);
        }

        private Call(
                StreamSpec stream,
                PartitionMap map,
                int events,
                int[] partitions,
                boolean callerWaits,
                long deadlineNanos) {
            this(
                    stream,
                    map,
                    IntStream.range(0, events)
                            .mapToObj(i -> valid(partitions.length == 0 ? null : "k"))
                            .toList(),
                    partitions,
                    callerWaits,
                    deadlineNanos);
        }

        private Call(
                StreamSpec stream,
                PartitionMap map,
                List<Valid> events,
                int[] partitions,
                boolean callerWaits,
                long deadlineNanos) {
            call = new PublishCall(
                    stream,
                    events,
                    map,
                    partitions,
                    callerWaits,
                    System.nanoTime(),
                    deadlineNanos,
                    new PublishCall.Outcome() {
                        @Override
                        public void stored(EventPosition[] positions, Executor continuations) {
                            outcome.complete(positions);
                        }

                        @Override
                        public void failed(EventSqlException failure) {
                            outcome.completeExceptionally(failure);
                        }
                    });
        }

        /** Returns the failure; {@code null} if there is none. */
        Throwable failure() {
            return outcome.isCompletedExceptionally() ? outcome.exceptionNow() : null;
        }
    }

    /** A call with one event for each of the partitions. */
    static Call call(int... partitions) {
        return new Call(STREAM, partitions.length, partitions, System.nanoTime() + FAR);
    }

    /** A call with one event for each of the keys, which are numbers: the partition is the number modulo that of partitions. */
    static Call callOfKeys(long deadlineNanos, int... keys) {
        return new Call(
                STREAM,
                map(STREAM),
                IntStream.of(keys).mapToObj(key -> valid("" + key)).toList(),
                IntStream.of(keys).map(key -> key % STREAM.partitions()).toArray(),
                false,
                deadlineNanos);
    }

    private static Valid valid(@Nullable String key) {
        return new Valid(key, new byte[0], null, EVENT_BYTES);
    }

    /** A call with one event whose caller is blocked until its outcome. */
    static Call callOfWaitingCaller(int partition) {
        return new Call(STREAM, 1, new int[] {partition}, true, System.nanoTime() + FAR);
    }

    static Call callWithoutKey(int events) {
        return callWithoutKey(STREAM, events);
    }

    static Call callWithoutKey(StreamSpec stream, int events) {
        return new Call(stream, events, PublishCall.ANY_PARTITION, System.nanoTime() + FAR);
    }

    /** A call with a deadline; without partitions it is one event without a key. */
    static Call callUntil(long deadlineNanos, int... partitions) {
        return new Call(STREAM, Math.max(1, partitions.length), partitions, deadlineNanos);
    }

    static List<PublishCall> calls(Call... calls) {
        return Stream.of(calls).map(c -> c.call).toList();
    }
}
