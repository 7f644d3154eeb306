package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class StreamSpecTest {

    @Test
    void of_name_hasTheDefaults() {
        StreamSpec spec = StreamSpec.of("orders");
        assertThat(spec.partitions()).isEqualTo(StreamSpec.DEFAULT_PARTITIONS).isEqualTo(10);
        assertThat(spec.segmentSize())
                .isEqualTo(StreamSpec.DEFAULT_SEGMENT_SIZE)
                .isEqualTo(1_000_000);
        assertThat(spec.json()).isFalse();
    }

    @Test
    void with_eachValue_changesOnlyIt() {
        assertThat(StreamSpec.of("a").withPartitions(3).withSegmentSize(500).asJson())
                .isEqualTo(new StreamSpec("a", 3, 500, true));
        assertThat(StreamSpec.of("a").asJson().withPartitions(3).withSegmentSize(500))
                .isEqualTo(new StreamSpec("a", 3, 500, true));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a",
                "a1",
                "order_events",
                "a_1_b",
                "select",
                "user",
                "table",
                "abcdefghijklmnopqrstuvwxyz0123456789",
                "order-service",
                "shop.orders.v1",
                "Orders",
                "A",
                "1a",
                "a_",
                "a__b",
                "a..b-",
            })
    void name_validForms_areAccepted(String name) {
        assertThat(StreamSpec.of(name).name()).isEqualTo(name);
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(
            strings = {
                "",
                " ",
                "_a",
                "-a",
                ".a",
                ".",
                "..",
                "a b",
                "a;b",
                "a'b",
                "a\"b",
                "a\\b",
                "a/b",
                "a$b",
                "a%b",
                "a\n",
                "\na",
                "a\u0000",
                "x'; DROP TABLE eventsql.stream; --",
                "a\"; DROP SCHEMA eventsql CASCADE; --",
                "\u0430bc", // Cyrillic a
                "\u00e4",
                "ord\u200ber", // zero width space
                "\uff41bc", // full-width a
                "a\u0661", // Arabic digit
                "\ud83d\ude00",
            })
    void name_otherForms_areRefused(String name) {
        assertRefused(() -> StreamSpec.of(name), "stream.name", "at most 100 characters");
    }

    @Test
    void name_longest_isAcceptedAndALongerOneRefused() {
        assertThat(StreamSpec.of("a".repeat(100)).name()).hasSize(100);
        assertRefused(() -> StreamSpec.of("a".repeat(101)), "stream.name", "at most 100 characters");
    }

    @Test
    void tableName_plainName_containsItAsItIs() {
        assertThat(StreamSpec.of("order_events").tableName()).isEqualTo("events_order_events");
        assertThat(StreamSpec.of("a".repeat(36)).tableName()).isEqualTo("events_" + "a".repeat(36));
    }

    @Test
    void tableName_otherNames_needsNoQuotesAndIsUnique() {
        List<String> names = List.of(
                "order-service",
                "order.service",
                "Order-Service",
                "order_service_",
                "order__service",
                "orders__p1",
                "1",
                "a".repeat(37),
                "a".repeat(100),
                "a-" + "b".repeat(98));
        List<String> tables =
                names.stream().map(name -> StreamSpec.of(name).tableName()).toList();
        assertThat(tables).doesNotHaveDuplicates().allMatch(table -> table.matches("events_[a-z0-9_]{1,36}"));
        assertThat(tables.getFirst()).isEqualTo("events_order_service_c1136991");
    }

    @Test
    void name_veryLong_isShownShortened() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> StreamSpec.of("a".repeat(1_000_000)))
                .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(300));
    }

    @Test
    void name_controlCharacters_areShownEscaped() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> StreamSpec.of("a\r\nINFO forged log line\u001b[31m"))
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\p{Cntrl}"));
    }

    @Test
    void partitions_atTheLimits_areAcceptedBeyondRefused() {
        assertThat(StreamSpec.of("a").withPartitions(1).partitions()).isEqualTo(1);
        assertThat(StreamSpec.of("a").withPartitions(1_000).partitions()).isEqualTo(1_000);
        for (int wrong : new int[] {0, -1, 1_001, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            assertRefused(
                    () -> StreamSpec.of("a").withPartitions(wrong),
                    "stream.partitions",
                    "between 1 and 1000",
                    "" + wrong);
        }
    }

    @Test
    void segmentSize_atTheLimits_isAcceptedBeyondRefused() {
        assertThat(StreamSpec.of("a").withSegmentSize(100).segmentSize()).isEqualTo(100);
        assertThat(StreamSpec.of("a").withSegmentSize(1_000_000_000).segmentSize())
                .isEqualTo(1_000_000_000);
        for (long wrong : new long[] {99, 0, -1, 1_000_000_001, Long.MAX_VALUE, Long.MIN_VALUE}) {
            assertRefused(
                    () -> StreamSpec.of("a").withSegmentSize(wrong),
                    "stream.segmentSize",
                    "between 100 and 1000000000",
                    "" + wrong);
        }
    }

    private static void assertRefused(ThrowingCallable call, String field, String... inMessage) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .withMessageStartingWith(field + " ")
                .satisfies(e -> assertThat(e.field()).isEqualTo(field))
                .satisfies(e -> assertThat(e.getMessage()).contains(inMessage));
    }
}
