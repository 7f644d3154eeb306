package io.eventsql.contract;

import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregate.Window;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.Event;
import io.eventsql.StoredEvent;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Random orders with a time of their own, an aggregate of them, and what it should be. Texts are {@code <cents>}, or empty for
 * orders that have none.
 */
final class AggregateModel {
    static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
    static final Duration WINDOW = Duration.ofSeconds(7);
    private static final int SECONDS = 60;
    private static final int KEYS = 12;

    private AggregateModel() {}

    static ContinuousAggregateSpec spec(String name, String stream) {
        return ContinuousAggregateSpec.of(name, stream)
                .withWindow(WINDOW)
                .withKey(event -> event.headers().get("shop"))
                .withTime(event -> Instant.parse(event.headers().get("time")))
                .withFilter(event -> !event.text().startsWith("-"))
                .withMeasure("cents", event -> event.text().isEmpty() ? null : Integer.valueOf(event.text()))
                .withMeasure("half", event -> event.text().isEmpty() ? null : Integer.parseInt(event.text()) / 2.0);
    }

    /** Returns events with keys that are not those of the aggregate, some late, some without a shop, tombstones and filtered ones. */
    static List<Event> events(Random random, int number) {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            String key = "order-" + random.nextInt(50);
            String text = random.nextInt(10) == 0 ? "" : Integer.toString(random.nextInt(1_100) - 100);
            Event event = random.nextInt(20) == 0 ? Event.tombstone(key) : Event.ofText(key, text);
            event = event.withHeader(
                    "time", START.plusMillis(random.nextInt(SECONDS * 1_000)).toString());
            int shop = random.nextInt(KEYS);
            events.add(shop == 0 ? event : event.withHeader("shop", "shop-" + shop));
        }
        return events;
    }

    /** Returns the windows that these events belong to, in the order of {@code ContinuousAggregate.windows}. */
    static List<Window> windows(List<StoredEvent> events) {
        Map<Map.Entry<Instant, String>, Window> windows = new HashMap<>();
        for (StoredEvent event : events) {
            if (event.isTombstone() || event.isErased() || event.text().startsWith("-")) {
                continue;
            }
            long ms = Instant.parse(event.headers().get("time")).toEpochMilli();
            Instant start = Instant.ofEpochMilli(ms - Math.floorMod(ms, WINDOW.toMillis()));
            String shop = event.headers().getOrDefault("shop", "");
            windows.merge(Map.entry(start, shop), window(start, shop, event.text()), AggregateModel::plus);
        }
        return windows.values().stream()
                .sorted(Comparator.comparing(Window::start).thenComparing(w -> w.key() == null ? "" : w.key()))
                .toList();
    }

    private static Window window(Instant start, String shop, String text) {
        Measure none = new Measure(0, BigDecimal.ZERO, null, null);
        BigDecimal cents = text.isEmpty() ? null : new BigDecimal(text);
        BigDecimal half = cents == null ? null : BigDecimal.valueOf(cents.intValue() / 2.0);
        return new Window(
                start,
                shop.isEmpty() ? null : shop,
                1,
                Map.of(
                        "cents", cents == null ? none : new Measure(1, cents, cents, cents),
                        "half", half == null ? none : new Measure(1, half, half, half)));
    }

    private static Window plus(Window a, Window b) {
        return new Window(
                a.start(),
                a.key(),
                a.events() + b.events(),
                Map.of(
                        "cents", a.measures().get("cents").plus(b.measures().get("cents")),
                        "half", a.measures().get("half").plus(b.measures().get("half"))));
    }
}
