package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.sql.ExpectedAppendStatement.Steps;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ExpectedStepsTest {
    private static final StreamSpec STREAM = StreamSpec.of("accounts").withPartitions(2);

    private final PartitionGroup first = new PartitionGroup(STREAM, 1, 0, 1);
    private final PartitionGroup second = new PartitionGroup(STREAM, 1, 1, 1);

    private static PublishCall call(PartitionGroup group, @Nullable Long expected, @Nullable String... keys) {
        List<Valid> events =
                Stream.of(keys).map(key -> new Valid(key, new byte[0], null, 0)).toList();
        PublishCall call = new PublishCall(
                STREAM, events, PartitionMap.first(1, 1), new int[keys.length], true, 0, 0, expected, new Ignored());
        events.forEach(event -> group.add(event, call));
        return call;
    }

    private static final class Ignored implements PublishCall.Outcome {
        @Override
        public void stored(EventPosition[] positions, Executor continuations) {}

        @Override
        public void failed(EventSqlException failure) {}
    }

    @Test
    void toStatement_callsAndEventsOfTheirKeys_areStepsInOrder() {
        call(first, null, "a", "x"); // a has a step, because a later call expects its version
        call(first, 4L, "a", "a");
        call(first, null, (String) null);
        call(first, 0L, "b");
        call(second, null, "a");
        call(second, 7L, "c");
        call(second, 8L, "c");

        Steps steps = new ExpectedSteps(List.of(first, second)).toStatement();
        assertThat(steps.ofEvents()).containsExactly(1, 0, 2, 2, 0, 3, 0, 4, 5);
        assertThat(steps.keys()).containsExactly(1, 1, 2, 3, 3);
        assertThat(steps.expected()).containsExactly(null, 4L, 0L, 7L, 8L);
        assertThat(steps.counts()).containsExactly(1, 2, 1, 1, 1);
        assertThat(steps.keyNames()).containsExactly("a", "b", "c");
        assertThat(steps.keyGroups()).containsExactly(1, 1, 2);
    }

    @Test
    void leaveOut_conflicts_areTheCallsWithTheirVersions() {
        PublishCall two = call(first, 4L, "a", "a");
        call(first, 0L, "b");
        PublishCall other = call(second, 7L, "c");

        ExpectedSteps steps = new ExpectedSteps(List.of(first, second));
        Map<PublishCall, Long> conflicts = steps.leaveOut(new long[] {1, 9, 3, 2});
        assertThat(conflicts).hasSize(2).containsEntry(two, 9L).containsEntry(other, 2L);
        assertThat(first.storedSize()).isEqualTo(1);
        assertThat(second.storedSize()).isZero();
    }
}
