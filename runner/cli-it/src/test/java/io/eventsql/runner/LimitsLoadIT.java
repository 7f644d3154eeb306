package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** Runs the parts that send events at a rate with tiny numbers: what they count, not how fast it is. */
class LimitsLoadIT extends LimitsFixture {
    @Test
    void limits_cost_countsEachLoadWithAndWithoutACheckpoint() throws IOException {
        JsonNode result = limits("parts=[cost]", "rounds=1", "cost_seconds=1", "warmup_seconds=1");

        assertThat(tables(result, "cost"))
                .containsExactly(
                        "1,000/s",
                        "2,000/s, 2 members",
                        "10,000/s",
                        "publish, 50 callers",
                        "publishAll of 100, 4 callers",
                        "publishAsync, 4 callers");
        assertThat(part(result, "cost").get("settings").get("fsync").asString()).isEqualTo("on");
        for (String load : tables(result, "cost")) {
            for (String name : rows(result, "cost", load)) {
                // same_without_page_images is a lower bound, and can be below 0: each image counts as a whole page.
                if (!name.matches("page_images.*|same_without_page_images|checkpoints.*")) {
                    assertThat(value(result, "cost", load, name, "steady"))
                            .as(name)
                            .isPositive();
                }
            }
            // More than the event itself, but each backend reports only once per second.
            assertThat(value(result, "cost", load, "wal_bytes_per_event", "steady"))
                    .as(load)
                    .isGreaterThan(100);
            assertThat(value(result, "cost", load, "checkpoints_per_interval", "with a checkpoint"))
                    .isGreaterThanOrEqualTo(1);
            assertThat(value(result, "cost", load, "page_images_per_1000_events", "with a checkpoint"))
                    .isPositive();
            assertThat(value(result, "cost", load, "server_cores", "steady"))
                    .isBetween(0.0, (double) Runtime.getRuntime().availableProcessors());
        }
    }

    @Test
    void limits_fanout_handlesEachEventTenTimes() throws IOException {
        JsonNode result = limits("parts=[fanout]", "rounds=1", "cost_seconds=2", "warmup_seconds=1");

        String ratios = "1,000/s, 10 consumers / 1,000/s, 1 consumer";
        assertThat(value(result, "fanout", ratios, "handled_per_event", "steady"))
                .isBetween(8.0, 12.0);
        assertThat(value(result, "fanout", ratios, "blocks_hit_per_event", "steady"))
                .isPositive();
    }

    @Test
    void limits_tail_attributesTheSlowestEventsOfEachRate() throws IOException {
        JsonNode result = limits("parts=[tail]", "tail_seconds=1", "warmup_seconds=0");

        assertThat(rows(result, "tail", "rates")).containsExactly("1,000/s", "10,000/s", "25,000/s");
        for (String rate : rows(result, "tail", "rates")) {
            assertThat(value(result, "tail", "rates", rate, "slow_from_ms"))
                    .isBetween(0.0, value(result, "tail", "rates", rate, "max_ms"));
            assertThat(value(result, "tail", "rates", rate, "of_s")).isGreaterThan(0.5);
            assertThat(value(result, "tail", "rates", rate, "sampler")).isBetween(0.0, 10.0);
            assertThat(rows(result, "tail", rate + ", of the time")).contains("CPU");
            for (String seen : rows(result, "tail", rate + ", of the time")) {
                for (String share : List.of("slow events", "slow time", "other time")) {
                    assertThat(value(result, "tail", rate + ", of the time", seen, share))
                            .isBetween(0.0, 100.0);
                }
            }
        }
    }
}
