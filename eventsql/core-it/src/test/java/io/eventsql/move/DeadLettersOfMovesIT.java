package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: dead letters are consumed wherever they are stored, also if their stream is created on a shard that accepts no events of it,
 * because keys have left or are about to come; and no dead letter prevents these keys from coming.
 */
@Timeout(180)
class DeadLettersOfMovesIT {
    private static final String COPIES = STREAM + ConsumerSpec.DEAD_LETTER_SUFFIX;
    private static final List<Integer> TWO = List.of(0, 1);
    private static final List<Integer> THREE = List.of(0, 1, 2);

    private final MoveCluster cluster = new MoveCluster(3);

    @AfterEach
    void close() {
        cluster.close();
    }

    private static Subscription subscribeFailing(EventSql eventSql) {
        return eventSql.subscribe(
                ConsumerSpec.of(STREAM, "fails")
                        .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                        .withCircuitBreaker(0),
                event -> {
                    throw new IllegalStateException("cannot handle it");
                });
    }

    @Test
    void deadLetter_keysHaveLeftTheShard_isConsumedAndKeysComeBack() {
        cluster.create(3);
        EventSql eventSql = cluster.open(3);
        publish(eventSql, STREAM, 0, KEYS);
        eventSql.moveShards(TWO);
        Handled copies = new Handled();
        try (Subscription failing = subscribeFailing(eventSql);
                Subscription member = eventSql.subscribe(ConsumerSpec.of(COPIES, "c"), copies::add)) {
            copies.awaitSize(KEYS);
            assertThat(copies.events()).anyMatch(copy -> copy.shard() == 2);
            eventSql.moveShards(THREE);
            publish(eventSql, COPIES, KEYS, 3 * KEYS);
            publish(eventSql, STREAM, 3 * KEYS, 4 * KEYS);
            copies.awaitSize(4 * KEYS);
            assertThat(copies.events())
                    .anyMatch(copy -> copy.shard() == 2 && Integer.parseInt(copy.text()) >= 3 * KEYS);
        }
        assertHandledOnce(copies, 4 * KEYS);
    }

    /** The stream is closed on the receivers. One of its partitions is opened by a copy, the others at the end of the move. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void deadLetter_streamIsCreatedAfterReceiversAreFrozen_isConsumed(boolean isCancelled) {
        cluster.create(3);
        EventSql eventSql = cluster.open(3);
        int published = 0;
        int shard;
        do {
            String number = Integer.toString(published++);
            shard = eventSql.publisher()
                    .publish(STREAM, Event.ofText("key-" + number, number))
                    .shard();
        } while (shard != 0); // a receiver
        MoveCluster.dieAfter(cluster.dataSources(), 7, TWO); // deciding, joining twice, preparing twice, freezing twice
        Handled copies = new Handled();
        try (Subscription failing = subscribeFailing(eventSql);
                Subscription member = eventSql.subscribe(ConsumerSpec.of(COPIES, "c"), copies::add)) {
            copies.awaitSize(published);
            if (isCancelled) {
                eventSql.cancelShardMove();
            } else {
                assertThat(eventSql.moveShards(TWO).isDone()).isTrue();
            }
            publish(eventSql, COPIES, published, KEYS);
            publish(eventSql, STREAM, KEYS, 2 * KEYS);
            copies.awaitSize(2 * KEYS);
        }
        assertHandledOnce(copies, 2 * KEYS);
    }

    /** Copies of a key are in the partition of their events, so those of different partitions are in no order. */
    private static void assertHandledOnce(Handled copies, int events) {
        assertThat(copies.texts().stream().map(Integer::parseInt).sorted())
                .containsExactlyElementsOf(IntStream.range(0, events).boxed().toList());
    }
}
