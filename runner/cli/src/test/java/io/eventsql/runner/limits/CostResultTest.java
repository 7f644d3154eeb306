package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.measure.RatioInterval;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CostResultTest {
    private static final LimitsSettings.CostLoad SETTINGS = new LimitsSettings.CostLoad(3, 10, 5);

    @Test
    void since_isTheDifferenceOfEachCounter() {
        assertThat(new Cost(11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121)
                        .since(new Cost(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)))
                .isEqualTo(new Cost(10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110));
    }

    @Test
    void load_figuresAreMediansOfTheRounds() {
        CostResult.Load load = load("1,000/s", 1);

        assertThat(load.steady())
                .containsEntry("events_per_second", new RatioInterval(1_000, 1_000, 1_000))
                .containsEntry("server_cores", new RatioInterval(0.2, 0.1, 0.3))
                .containsEntry("server_us_per_event", new RatioInterval(200, 100, 300))
                .containsEntry("client_us_per_event", new RatioInterval(50, 50, 50))
                .containsEntry("transactions_per_event", new RatioInterval(2, 2, 2))
                .containsEntry("wal_bytes_per_event", new RatioInterval(400, 400, 400))
                .containsEntry("wal_per_published_byte", new RatioInterval(2, 2, 2))
                .containsEntry("same_without_page_images", new RatioInterval(1.5904, 1.5904, 1.5904))
                .containsEntry("page_images_per_1000_events", new RatioInterval(10, 10, 10));
        assertThat(load.checkpointed()).isEmpty();
    }

    @Test
    void withLastToFirst_comparesTheRoundsInPairs() {
        CostResult result =
                new CostResult(SETTINGS, Map.of(), List.of(load("one", 1), load("ten", 4)), null).withLastToFirst();

        assertThat(result.lastToFirst())
                .containsEntry("server_us_per_event", new RatioInterval(4, 4, 4))
                .containsEntry("events_per_second", new RatioInterval(1, 1, 1));
    }

    @Test
    void lines_showBothColumnsAndTheSettings() {
        List<Cost> rounds = List.of(cost(1, 1), cost(2, 1), cost(3, 1));
        CostResult.Load load = CostResult.Load.of("1,000/s", rounds, rounds);

        assertThat(new CostResult(SETTINGS, Map.of("fsync", "on"), List.of(load), null).lines("COST"))
                .contains(
                        "COST; median of 3 rounds of 10 s (95 % interval); a client is this process, with its compilers")
                .anyMatch(line -> line.matches("1,000/s +steady +with a checkpoint"))
                .anyMatch(
                        line -> line.matches("  server_cores +0.200 \\(0.100 to 0.300\\) +0.200 \\(0.100 to 0.300\\)"))
                .endsWith("{fsync=on}");
    }

    private static CostResult.Load load(String name, int factor) {
        return CostResult.Load.of(name, List.of(cost(1, factor), cost(2, factor), cost(3, factor)), List.of());
    }

    private static Cost cost(int round, int factor) {
        return new Cost(10, 10_000, 2_000_000, 10_000, round * factor, 0.5, 20_000, 50_000, 4_000_000, 100, 0);
    }
}
