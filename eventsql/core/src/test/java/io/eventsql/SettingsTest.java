package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Settings.Builder;
import java.time.Duration;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class SettingsTest {

    /** A setting with its limits, the nearest values beyond them, and its default. */
    private record Limits<T>(
            String setting,
            BiFunction<Builder, T, Builder> with,
            Function<Settings, T> get,
            T min,
            T max,
            T defaultValue,
            T belowMin,
            T aboveMax) {

        static Limits<Duration> ofDuration(
                String setting,
                BiFunction<Builder, Duration, Builder> with,
                Function<Settings, Duration> get,
                Duration min,
                Duration max,
                Duration defaultValue) {
            return new Limits<>(setting, with, get, min, max, defaultValue, min.minusNanos(1), max.plusNanos(1));
        }

        static Limits<Integer> ofInt(
                String setting,
                BiFunction<Builder, Integer, Builder> with,
                Function<Settings, Integer> get,
                int min,
                int max,
                int defaultValue) {
            return new Limits<>(setting, with, get, min, max, defaultValue, min - 1, max + 1);
        }

        static Limits<Long> ofLong(
                String setting,
                BiFunction<Builder, Long, Builder> with,
                Function<Settings, Long> get,
                long min,
                long max,
                long defaultValue) {
            return new Limits<>(setting, with, get, min, max, defaultValue, min - 1, max + 1);
        }

        Settings build(T value) {
            return with.apply(Settings.builder(), value).build();
        }

        @Override
        public String toString() {
            return setting;
        }
    }

    static List<Limits<?>> limits() {
        return Stream.<Limits<?>>of(
                        Limits.ofDuration(
                                "publishTimeout",
                                Builder::publishTimeout,
                                Settings::publishTimeout,
                                Duration.ofMillis(10),
                                Duration.ofHours(1),
                                Duration.ofSeconds(30)),
                        Limits.ofLong(
                                "bufferBytes",
                                Builder::bufferBytes,
                                Settings::bufferBytes,
                                64L << 10,
                                16L << 30,
                                16L << 20),
                        Limits.ofInt(
                                "maxEventBytes",
                                Builder::maxEventBytes,
                                Settings::maxEventBytes,
                                1,
                                256 << 20,
                                4 << 20),
                        Limits.ofInt("maxKeyBytes", Builder::maxKeyBytes, Settings::maxKeyBytes, 1, 64 << 10, 1_024),
                        Limits.ofInt(
                                "maxHeadersBytes",
                                Builder::maxHeadersBytes,
                                Settings::maxHeadersBytes,
                                2,
                                16 << 20,
                                16 << 10),
                        Limits.ofInt(
                                "maxBatchEvents",
                                Builder::maxBatchEvents,
                                Settings::maxBatchEvents,
                                1,
                                100_000,
                                Settings.DEFAULT_MAX_BATCH_EVENTS),
                        Limits.ofLong(
                                "maxBatchBytes",
                                Builder::maxBatchBytes,
                                Settings::maxBatchBytes,
                                1L << 10,
                                256L << 20,
                                Settings.DEFAULT_MAX_BATCH_BYTES),
                        Limits.ofInt(
                                "appendConnections",
                                Builder::appendConnections,
                                Settings::appendConnections,
                                1,
                                16,
                                Settings.DEFAULT_APPEND_CONNECTIONS),
                        Limits.ofDuration(
                                "maxCommitDelay",
                                Builder::maxCommitDelay,
                                Settings::maxCommitDelay,
                                Duration.ZERO,
                                Duration.ofSeconds(1),
                                Duration.ofMillis(5)),
                        Limits.ofDuration(
                                "networkTimeout",
                                Builder::networkTimeout,
                                Settings::networkTimeout,
                                Duration.ofMillis(100),
                                Duration.ofMinutes(10),
                                Duration.ofSeconds(10)),
                        Limits.ofDuration(
                                "notifyInterval",
                                Builder::notifyInterval,
                                Settings::notifyInterval,
                                Duration.ofMillis(1),
                                Duration.ofSeconds(10),
                                Settings.DEFAULT_NOTIFY_INTERVAL),
                        Limits.ofDuration(
                                "pollInterval",
                                Builder::pollInterval,
                                Settings::pollInterval,
                                Duration.ofMillis(10),
                                Duration.ofMinutes(1),
                                Duration.ofSeconds(3)),
                        Limits.ofDuration(
                                "lease",
                                Builder::lease,
                                Settings::lease,
                                Duration.ofMillis(300),
                                Duration.ofMinutes(10),
                                Duration.ofSeconds(10)),
                        Limits.ofDuration(
                                "heartbeat",
                                Builder::heartbeat,
                                Settings::heartbeat,
                                Duration.ofMillis(50),
                                Duration.ofSeconds(5),
                                Duration.ofSeconds(3)),
                        Limits.ofDuration(
                                "outboxPollInterval",
                                Builder::outboxPollInterval,
                                Settings::outboxPollInterval,
                                Duration.ofMillis(10),
                                Duration.ofMinutes(1),
                                Duration.ofSeconds(5)),
                        Limits.ofDuration(
                                "outboxLease",
                                Builder::outboxLease,
                                Settings::outboxLease,
                                Duration.ofSeconds(1),
                                Duration.ofMinutes(10),
                                Duration.ofSeconds(15)),
                        Limits.ofInt(
                                "outboxPageEvents",
                                Builder::outboxPageEvents,
                                Settings::outboxPageEvents,
                                1,
                                100_000,
                                Settings.DEFAULT_OUTBOX_PAGE_EVENTS),
                        Limits.ofDuration(
                                "closeTimeout",
                                Builder::closeTimeout,
                                Settings::closeTimeout,
                                Duration.ZERO,
                                Duration.ofHours(1),
                                Duration.ofSeconds(25)))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("limits")
    <T> void build_withinTheLimits_isAccepted(Limits<T> limits) {
        assertThat(limits.get().apply(Settings.defaults())).isEqualTo(limits.defaultValue());
        assertThat(limits.get().apply(limits.build(limits.min()))).isEqualTo(limits.min());
        assertThat(limits.get().apply(limits.build(limits.max()))).isEqualTo(limits.max());
    }

    @ParameterizedTest
    @MethodSource("limits")
    <T> void build_beyondTheLimits_isRefused(Limits<T> limits) {
        for (T wrong : List.of(limits.belowMin(), limits.aboveMax())) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> limits.build(wrong))
                    .withMessage("settings." + limits.setting() + " must be between " + limits.min() + " and "
                            + limits.max() + ", but is " + wrong)
                    .satisfies(e -> assertThat(e.field()).isEqualTo("settings." + limits.setting()))
                    .satisfies(e -> assertThat(e.setting()).contains(limits.setting()));
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    <T> void build_durationMissing_isRefused(Limits<T> limits) {
        if (limits.min() instanceof Duration) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> limits.build(null))
                    .withMessageStartingWith("settings." + limits.setting() + " ");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"eventsql", "a", "my_events", "events2", "abcdefghijklmnopqrstuvwxyz01234", "select", "user"})
    void schema_validForms_areAccepted(String schema) {
        assertThat(Settings.builder().schema(schema).build().schema()).isEqualTo(schema);
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(
            strings = {
                "",
                "Eventsql",
                "1a",
                "_a",
                "a-b",
                "a.b",
                "a b",
                "a;b",
                "a\"b",
                "a'b",
                "a\n",
                "\u0430bc",
                "pg_events",
                "abcdefghijklmnopqrstuvwxyz012345",
            })
    void schema_otherForms_areRefused(String schema) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> Settings.builder().schema(schema).build())
                .withMessageStartingWith("settings.schema ")
                .withMessageContaining("at most 31 characters");
    }

    @Test
    void build_builderChangedAfterwards_staysAsItWas() {
        Builder builder = Settings.builder().maxBatchEvents(7).migrateSchema(false);
        Settings settings = builder.build();
        builder.maxBatchEvents(8).migrateSchema(true).schema("other");
        assertThat(settings.maxBatchEvents()).isEqualTo(7);
        assertThat(settings.migrateSchema()).isFalse();
        assertThat(settings.schema()).isEqualTo("eventsql");
    }
}
