package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class ContinuousAggregateSpecTest {
    private static final ContinuousAggregateSpec SPEC = ContinuousAggregateSpec.of("orders_per_minute", "orders");

    private static void assertRejected(String field, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .matches(e -> e.field().equals(field));
    }

    @Test
    void values_outOfRange_areRejectedWithTheirField() {
        assertRejected("aggregate.name", () -> ContinuousAggregateSpec.of("Orders", "orders"));
        assertRejected("aggregate.name", () -> ContinuousAggregateSpec.of("a".repeat(39), "orders"));
        assertRejected("aggregate.stream", () -> ContinuousAggregateSpec.of("a", ""));
        assertRejected("aggregate.window", () -> SPEC.withWindow(Duration.ZERO));
        assertRejected("aggregate.window", () -> SPEC.withWindow(Duration.ofNanos(1_500_000)));
        assertRejected("aggregate.table", () -> SPEC.withTable("public", "é".repeat(26)));
        assertRejected("aggregate.schema", () -> SPEC.withTable("", "t"));
        assertRejected("aggregate.measure", () -> SPEC.withMeasure("Cents", event -> 1));
        assertRejected(
                "aggregate.measures[cents]",
                () -> SPEC.withMeasure("cents", event -> 1).withMeasure("cents", event -> 2));
        assertRejected("aggregate.concurrency", () -> SPEC.withConcurrency(0));
    }

    @Test
    void declaration_containsWhatTheTablesDependOn() {
        assertThat(SPEC.withMeasure("weight", event -> 1)
                        .withMeasure("cents", event -> 1L)
                        .declaration())
                .isEqualTo("stream orders, windows of 60000 ms, measures [cents, weight]");
        assertThat(SPEC.withKey(StoredEvent::text).withConcurrency(1).declaration())
                .isEqualTo(SPEC.declaration());
    }

    @Test
    void sql_quotesNames() {
        String sql = EventSql.continuousAggregateSql(
                SPEC.withTable("My \"Schema\"", "Orders 'per' minute"), "reporting-app");
        assertThat(sql)
                .contains("CREATE VIEW \"My \"\"Schema\"\"\".\"Orders 'per' minute\" AS")
                .contains("GRANT USAGE ON SCHEMA \"My \"\"Schema\"\"\" TO \"reporting-app\";");
    }
}
