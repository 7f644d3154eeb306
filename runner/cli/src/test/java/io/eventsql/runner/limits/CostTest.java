package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.result.Figure;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CostTest {
    @Test
    void since_isTheDifferenceOfEachCounter() {
        assertThat(new Cost(11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121)
                        .since(new Cost(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)))
                .isEqualTo(new Cost(10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110));
    }

    @Test
    void figures_areMediansOfTheRounds() {
        Map<String, Figure> figures = Cost.figures(List.of(cost(1), cost(2), cost(3)));

        assertThat(figures)
                .containsEntry("events_per_second", figure(1_000))
                .containsEntry("server_cores", new Figure(0.2, "", 0.1, 0.3, List.of(0.1, 0.2, 0.3)))
                .containsEntry("server_us_per_event", new Figure(200, "", 100.0, 300.0, List.of(100.0, 200.0, 300.0)))
                .containsEntry("client_us_per_event", figure(50))
                .containsEntry("transactions_per_event", figure(2))
                .containsEntry("wal_bytes_per_event", figure(400))
                .containsEntry("wal_per_published_byte", figure(2))
                .containsEntry("same_without_page_images", figure(1.5904))
                .containsEntry("page_images_per_1000_events", figure(10));
        assertThat(Cost.figures(List.of())).isEmpty();
    }

    private static Figure figure(double value) {
        return new Figure(value, "", value, value, List.of(value, value, value));
    }

    private static Cost cost(int round) {
        return new Cost(10, 10_000, 2_000_000, 10_000, round, 0.5, 20_000, 50_000, 4_000_000, 100, 0);
    }
}
