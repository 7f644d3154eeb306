package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventFailedException;
import io.eventsql.StoredEvent;
import io.eventsql.internal.sql.AggregateRows.Partial;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Adds up the events of a page by window and key. Not thread-safe. */
final class PageTotals {
    private static final long MICROS_PER_SECOND = 1_000_000;
    private static final int NANOS_PER_MICRO = 1_000;
    /** Of what timestamptz can have, and of microseconds in a long, with a window before the first one. */
    private static final Instant TIME_MIN = Instant.parse("-4700-01-01T00:00:00Z");

    private static final Instant TIME_MAX = Instant.parse("+294000-01-01T00:00:00Z");
    private static final Measure NONE = new Measure(0, BigDecimal.ZERO, null, null);

    private final ContinuousAggregateSpec spec;
    private final List<String> names;
    private final List<Function<StoredEvent, @Nullable Number>> measures;
    private final long windowMicros;
    private final Map<WindowKey, Totals> totals = new HashMap<>();

    private PageTotals(ContinuousAggregateSpec spec) {
        this.spec = spec;
        this.names = List.copyOf(spec.measures().keySet());
        this.measures = List.copyOf(spec.measures().values());
        this.windowMicros = Math.multiplyExact(spec.window().toMillis(), NANOS_PER_MICRO);
    }

    private record WindowKey(long windowStart, @Nullable String key) {}

    private static final class Totals {
        private long events;
        private final Measure[] measures;

        private Totals(int measures) {
            this.measures = new Measure[measures];
            Arrays.fill(this.measures, NONE);
        }
    }

    /**
     * Returns what the events add.
     *
     * @throws EventFailedException if a function of the declaration fails for an event
     */
    static List<Partial> of(ContinuousAggregateSpec spec, List<StoredEvent> events) throws EventFailedException {
        PageTotals page = new PageTotals(spec);
        for (StoredEvent event : events) {
            try {
                page.add(event);
            } catch (RuntimeException e) {
                throw new EventFailedException(event, e);
            }
        }
        return page.partials();
    }

    private void add(StoredEvent event) {
        if (event.isTombstone() || event.isErased() || !spec.filter().test(event)) {
            return;
        }
        // All functions first: an event that fails adds nothing.
        WindowKey window = new WindowKey(
                windowStart(spec.time().apply(event)),
                requireStorable(spec.key().apply(event)));
        @Nullable BigDecimal[] values = new BigDecimal[measures.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = requireStorable(names.get(i), decimal(measures.get(i).apply(event)));
        }
        Totals sum = totals.computeIfAbsent(window, w -> new Totals(measures.size()));
        sum.events++;
        for (int i = 0; i < values.length; i++) {
            @Nullable BigDecimal value = values[i];
            if (value != null) {
                sum.measures[i] = sum.measures[i].plus(new Measure(1, value, value, value));
            }
        }
    }

    private long windowStart(@Nullable Instant time) {
        if (time == null) {
            throw new IllegalArgumentException("the aggregate's function of the time returned null");
        }
        if (time.isBefore(TIME_MIN) || time.isAfter(TIME_MAX)) {
            throw new IllegalArgumentException(
                    "the aggregate's time must be between " + TIME_MIN + " and " + TIME_MAX + ", but is " + time);
        }
        long micros = Math.addExact(
                Math.multiplyExact(time.getEpochSecond(), MICROS_PER_SECOND), time.getNano() / NANOS_PER_MICRO);
        return Math.multiplyExact(Math.floorDiv(micros, windowMicros), windowMicros);
    }

    private static @Nullable String requireStorable(@Nullable String key) {
        if (key == null) {
            return null;
        }
        byte[] utf8 = key.getBytes(StandardCharsets.UTF_8);
        if (utf8.length > ContinuousAggregateSpec.KEY_BYTES_MAX || key.indexOf('\0') >= 0) {
            throw new IllegalArgumentException(
                    "the aggregate's key must have at most " + ContinuousAggregateSpec.KEY_BYTES_MAX
                            + " bytes of UTF-8 and no NUL, but has " + utf8.length + " bytes");
        }
        // As it is stored: keys that end in halves of different characters may be the same there.
        return new String(utf8, StandardCharsets.UTF_8);
    }

    private static @Nullable BigDecimal requireStorable(String measure, @Nullable BigDecimal number) {
        if (number == null) {
            return null;
        }
        long before = (long) number.precision() - number.scale();
        if (before > ContinuousAggregateSpec.DIGITS_BEFORE_POINT_MAX
                || number.scale() > ContinuousAggregateSpec.DIGITS_AFTER_POINT_MAX) {
            throw new IllegalArgumentException("the aggregate's measure " + measure + " must have at most "
                    + ContinuousAggregateSpec.DIGITS_BEFORE_POINT_MAX + " digits before the decimal point and "
                    + ContinuousAggregateSpec.DIGITS_AFTER_POINT_MAX + " after it, but has " + Math.max(0, before)
                    + " and " + Math.max(0, number.scale()));
        }
        return number;
    }

    private static @Nullable BigDecimal decimal(@Nullable Number number) {
        return switch (number) {
            case null -> null;
            case BigDecimal decimal -> decimal;
            case BigInteger integer -> new BigDecimal(integer);
            case Double real -> BigDecimal.valueOf(real);
            case Float real -> new BigDecimal(real.toString());
            case Long integer -> BigDecimal.valueOf(integer);
            case Integer integer -> BigDecimal.valueOf(integer);
            default -> new BigDecimal(number.toString());
        };
    }

    private List<Partial> partials() {
        List<Partial> partials = new ArrayList<>(totals.size());
        totals.forEach((window, sum) ->
                partials.add(new Partial(window.windowStart(), window.key(), sum.events, List.of(sum.measures))));
        return partials;
    }
}
