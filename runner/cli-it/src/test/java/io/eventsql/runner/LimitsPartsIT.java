package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** Runs the parts on what waits, holds or writes next to events with tiny numbers: what is measured, not how fast it is. */
class LimitsPartsIT extends LimitsFixture {
    @Test
    void limits_scheduled_comparesRoundsAndFindsEachDueEventOnce() throws IOException {
        JsonNode result = limits(
                "parts=[scheduled]", "rounds=1", "round_seconds=0.2", "scheduled_events=1000", "scheduled_seconds=1");

        assertThat(value(result, "scheduled", "rounds", "scheduled / none", "events_per_second"))
                .isPositive();
        assertThat(value(result, "scheduled", "due events", "scheduled", "value"))
                .isEqualTo(1_000);
        assertThat(value(result, "scheduled", "due events", "distinct", "value"))
                .isEqualTo(1_000);
        assertThat(value(result, "scheduled", "due events", "early", "value")).isZero();
    }

    @Test
    void limits_snapshot_isHeldOnlyInTheRunsWithIt() throws IOException {
        JsonNode result = limits("parts=[snapshot]", "snapshot_seconds=1", "snapshot_rate=200", "warmup_seconds=0");

        for (String stream : List.of("1 partition", "10 partitions")) {
            for (String kind : List.of("without", "with")) {
                for (int tenth = 1; tenth <= 10; tenth++) {
                    assertThat(value(result, "snapshot", stream, "tenth " + tenth, kind + "_events"))
                            .isEqualTo(20);
                }
                assertThat(value(result, "snapshot", stream, "all", kind + "_p99_ms"))
                        .isPositive();
                assertThat(value(result, "snapshot", stream + ", ratios", "p99, last tenth / first tenth", kind))
                        .isPositive();
            }
            JsonNode ages = row(result, "snapshot", stream, "snapshot_age_transactions");
            assertThat(ages.has("without")).isFalse();
            assertThat(ages.get("with").get("value").asDouble()).isPositive();
        }
        assertThat(part(result, "snapshot").get("histograms").size()).isEqualTo(40);
    }

    @Test
    void limits_handlers_handlesEachEventOnceInTheOrderOfItsKey() throws IOException {
        JsonNode result = limits(
                "parts=[handlers]", "handlers_events=3000", "handlers_sequential_events=20", "handlers_concurrency=20");

        assertThat(value(result, "handlers", "", "handler_ms", "value")).isEqualTo(10);
        assertThat(value(result, "handlers", "handlers", "sequential", "events"))
                .isEqualTo(20);
        assertThat(value(result, "handlers", "handlers", "sequential", "events_per_second"))
                .isBetween(0.0, 101.0);
        assertThat(value(result, "handlers", "handlers", "20 keys in parallel", "events"))
                .isEqualTo(3_000);
        assertThat(value(result, "handlers", "handlers", "20 keys in parallel", "events_per_second"))
                .isBetween(0.0, 2_001.0);
        for (String run : rows(result, "handlers", "handlers")) {
            for (String wrong : List.of("lost", "duplicated", "out_of_order")) {
                assertThat(value(result, "handlers", "handlers", run, wrong)).isZero();
            }
        }
    }

    @Test
    void limits_transactions_writesTheSameBusinessRowsWithAPlainRowAndWithAPublish() throws Exception {
        JsonNode result = limits("parts=[transactions]", "rounds=1", "round_seconds=0.2");

        assertThat(rows(result, "transactions", "rates"))
                .containsExactly(
                        "with a plain row, 8 callers", "with a publish, 8 callers", "relayed, 4 callers of 100");
        for (String way : rows(result, "transactions", "rates")) {
            assertThat(value(result, "transactions", "rates", way, "events_per_second"))
                    .as(way)
                    .isPositive();
        }
        // Two turns of each way, of which only the first one writes plain rows.
        List<Boolean> onlyBusinessRows = new ArrayList<>();
        for (String run : query("SELECT string_agg(substr(relname, 14), ',') FROM pg_class"
                        + " WHERE relname LIKE 'limits_order_%' AND relkind = 'r'")
                .split(",", -1)) {
            long business = queryLong("SELECT count(*) FROM limits_order_" + run);
            long plain = queryLong("SELECT count(*) FROM limits_plain_outbox_" + run);
            assertThat(business).isPositive();
            assertThat(plain).isIn(0L, business);
            onlyBusinessRows.add(plain == 0);
        }
        assertThat(onlyBusinessRows).containsExactlyInAnyOrder(false, false, true, true, true, true);
    }

    @Test
    void limits_outbox_movesEachCommittedEventWithAndWithoutAnOldSnapshot() throws IOException {
        JsonNode result = limits("parts=[outbox]", "outbox_seconds=1", "outbox_rate=100", "warmup_seconds=1");

        for (String kind : List.of("without", "with")) {
            assertThat(value(result, "outbox", "runs", "direct_events", kind)).isEqualTo(100);
            assertThat(value(result, "outbox", "runs", "committed_events", kind))
                    .isEqualTo(200);
            assertThat(value(result, "outbox", "runs", "stored_events", kind)).isEqualTo(200);
            assertThat(value(result, "outbox", "runs", "transactions_p50_ms", kind))
                    .isPositive();
            for (int tenth = 1; tenth <= 10; tenth++) {
                assertThat(value(result, "outbox", "tenths", "tenth " + tenth, kind + "_bytes"))
                        .isPositive();
            }
        }
        JsonNode ages = row(result, "outbox", "runs", "snapshot_age_transactions");
        assertThat(ages.has("without")).isFalse();
        assertThat(ages.get("with").get("value").asDouble()).isPositive();
    }
}
