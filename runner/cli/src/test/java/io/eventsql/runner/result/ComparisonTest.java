package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

class ComparisonTest {
    private final Comparison comparison = new Comparison();

    @Test
    void markdown_resultsOfBothKinds_areInOneTable() {
        comparison.add("main", JsonMapper.shared().readTree("""
                                {"passed": true, "rate_asked": 15000, "publish_rate": 14999.9, "consume_rate": 14998.2,
                                 "publish_latency_ms": {"p50": 4.1234, "p99": 9}, "end_to_end_latency_ms": {"p50": 5, "p99": 11},
                                 "events_lost": 0, "events_duplicated": 0, "fsync": "on", "synchronous_commit": "on"}"""));
        comparison.add("fan-out", JsonMapper.shared().readTree("""
                                {"format": 2, "passed": false, "driver": {"name": "d", "durability": "a | b", "order": "none"},
                                 "phases": [{"name": "warm-up", "measured": false},
                                   {"name": "one", "measured": true, "offered_rate": 10, "publish_rate": 10, "consume_rate": 0,
                                    "publish_latency_ms": {"p50": 1, "p99": 2}, "end_to_end_latency_ms": null},
                                   {"name": "two", "measured": true}],
                                 "consumers": [{"events_lost": 1000, "events_duplicated": 0}, {"events_lost": 2, "events_duplicated": 0}]}"""));

        assertThat(comparison.markdown())
                .hasSize(5)
                .contains(
                        "| main | eventsql | fsync on, synchronous_commit on | per key | 15,000 | 15,000 | 14,998 | 4.123"
                                + " | 9.000 | 5.000 | 11.000 | 0 | 0 | one run | passed |",
                        "| fan-out, one | d | a \\| b | none | 10 | 10 | – | 1.000 | 2.000 | – | – | 1,002 | 0 | one run | FAILED |",
                        "| fan-out, two | d | a \\| b | none | – | – | – | – | – | – | – | 1,002 | 0 | one run | FAILED |");
    }

    @Test
    void markdown_differentMachines_neverShareATable() {
        comparison.add("a", JsonMapper.shared().readTree("{\"machine\": {\"cpus\": 2, \"os\": \"Linux 1\"}}"));
        comparison.add("b", JsonMapper.shared().readTree("{\"rate_asked\": 1, \"cpus\": 2, \"os\": \"Linux 2\"}"));
        comparison.add("c", JsonMapper.shared().readTree("{\"machine\": {\"cpus\": 2, \"os\": \"Linux 1\"}}"));

        assertThat(comparison.markdown().stream()
                        .map(line -> line.replaceFirst("^\\| ([a-z]+) \\|.*", "$1"))
                        .toList())
                .containsExactly(
                        "On 2 CPUs, Linux 1:",
                        "",
                        "run",
                        comparison.markdown().get(3),
                        "a",
                        "c",
                        "",
                        "On 2 CPUs, Linux 2:",
                        "",
                        "run",
                        comparison.markdown().get(3),
                        "b");
    }
}
