package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class BenchmarkEventTest {
    private static final long INTENDED_AT_MICROS = EpochMicros.of(Instant.parse("2026-02-28T23:59:58.000070Z"));
    private static final BenchmarkEvent EVENT = new BenchmarkEvent("0123cdef", 7, false, 42, INTENDED_AT_MICROS);

    private final JsonMapper json = new JsonMapper();

    @ParameterizedTest
    @CsvSource({
        "00000000,   0, false,            0,                0",
        "ffffffff, 999,  true, 999999999999, 9999999999999999",
        "0a1b2c3d,  10, false,            9, 1795254000123456",
        "deadbeef, 100,  true, 100000000000, 1000000000000000",
    })
    void encode_anyFields_decodesToTheSameEvent(String run, int runner, boolean warmup, long number, long micros) {
        BenchmarkEvent event = new BenchmarkEvent(run, runner, warmup, number, micros);

        assertThat(BenchmarkEvent.decode(event.encode())).isEqualTo(event);
        assertThat(BenchmarkEvent.decode(event.encode(BenchmarkEvent.EVENT_BYTES_MIN)))
                .isEqualTo(event);
    }

    @Test
    void encode_accountCreated_isJsonOfAbout230Bytes() {
        for (int i = 0; i < 1_000; i++) {
            byte[] value = EVENT.encode();
            assertThat(value).hasSizeBetween(210, 250);

            JsonNode account = json.readTree(value);
            assertThat(account.propertyNames()).containsExactly("benchmark", "id", "email", "name", "createdAt");
            assertThat(account.get("benchmark").asString()).isEqualTo("0123cdef-007-m-000000000042-1772323198000070");
            UUID id = UUID.fromString(account.get("id").asString());
            assertThat(id.version()).isEqualTo(4);
            assertThat(id.variant()).isEqualTo(2);
            assertThat(account.get("email").asString()).matches("[a-z]+\\.[a-z]+\\.\\d{10}@customers\\.example\\.com");
            assertThat(account.get("name").asString()).matches("[A-Z][a-z]+ [A-Z][a-z]+");
            assertThat(account.get("createdAt").asString()).isEqualTo("2026-02-28T23:59:58.000070Z");
        }
    }

    @Test
    void encode_accountCreated_differsEachTime() {
        Set<String> accounts = new HashSet<>();
        for (int i = 0; i < 1_000; i++) {
            accounts.add(json.readTree(EVENT.encode()).get("id").asString());
        }
        assertThat(accounts).hasSize(1_000);
    }

    @ParameterizedTest
    @ValueSource(ints = {80, 81, 1_000, 262_144, 1_000_000})
    void encode_size_isExactAndPrintableJson(int eventBytes) {
        byte[] value = EVENT.encode(eventBytes);

        assertThat(value).hasSize(eventBytes);
        assertThat(new String(value, US_ASCII)).matches("[ -~]*");
        JsonNode event = json.readTree(value);
        assertThat(event.propertyNames()).containsExactly("benchmark", "payload");
        assertThat(event.get("payload").asString()).doesNotContain("\"", "'", "\\");
    }

    @ParameterizedTest
    @ValueSource(ints = {79, 0, -1})
    void encode_tooSmall_isRejected(int eventBytes) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> EVENT.encode(eventBytes))
                .withMessage("eventBytes must be at least 80, but is " + eventBytes);
    }

    @ParameterizedTest
    @CsvSource({
        "0123cde,    0, 0, 0, run",
        "0123cdef0,  0, 0, 0, run",
        "0123CDEF,   0, 0, 0, run",
        "0123cdeg,   0, 0, 0, run",
        "0123cdef,  -1, 0, 0, runner",
        "0123cdef, 1000, 0, 0, runner",
        "0123cdef,   0, -1, 0, number",
        "0123cdef,   0, 1000000000000, 0, number",
        "0123cdef,   0, 0, -1, intendedAtMicros",
        "0123cdef,   0, 0, 10000000000000000, intendedAtMicros",
    })
    void event_fieldOutOfRange_isRejected(String run, int runner, long number, long micros, String field) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new BenchmarkEvent(run, runner, false, number, micros))
                .withMessageStartingWith(field + " must be ");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{}                                                                    | it has only 2 bytes",
                "{\"Benchmark\":\"0123cdef-007-m-000000000042-1772323198000070\",\"x\":1} | it does not begin with",
                "{\"benchmark\":\"0123cdeX-007-m-000000000042-1772323198000070\",\"x\":1} | no run's id at byte 14",
                "{\"benchmark\":\"0123cdef+007-m-000000000042-1772323198000070\",\"x\":1} | no - at byte 22",
                "{\"benchmark\":\"0123cdef-0x7-m-000000000042-1772323198000070\",\"x\":1} | no digit at byte 24",
                "{\"benchmark\":\"0123cdef-007+m-000000000042-1772323198000070\",\"x\":1} | no - at byte 26",
                "{\"benchmark\":\"0123cdef-007-x-000000000042-1772323198000070\",\"x\":1} | neither w nor m at byte 27",
                "{\"benchmark\":\"0123cdef-007-m+000000000042-1772323198000070\",\"x\":1} | no - at byte 28",
                "{\"benchmark\":\"0123cdef-007-m--00000000042-1772323198000070\",\"x\":1} | no digit at byte 29",
                "{\"benchmark\":\"0123cdef-007-m-000000000042+1772323198000070\",\"x\":1} | no - at byte 41",
                "{\"benchmark\":\"0123cdef-007-m-000000000042-177232319800007 \",\"x\":1} | no digit at byte 57",
                "{\"benchmark\":\"0123cdef-007-m-000000000042-17723231980000701,\"x\":1} | no \" at byte 58",
                "{\"benchmark\":\"0123cdef-007-m-000000000042-1772323198000070\",\"x\":1  | no } at byte",
            })
    void decode_foreignValue_reportsTheProblem(String value, String problem) {
        assertThatThrownBy(() -> BenchmarkEvent.decode(value.getBytes(US_ASCII)))
                .isInstanceOf(NotABenchmarkEventException.class)
                .hasMessageContaining(problem);
    }

    @Test
    void decode_truncatedAnywhere_isRejected() {
        byte[] value = EVENT.encode();
        for (int length = 0; length < value.length; length++) {
            byte[] cutOff = Arrays.copyOf(value, length);
            assertThatThrownBy(() -> BenchmarkEvent.decode(cutOff)).isInstanceOf(NotABenchmarkEventException.class);
        }
    }

    @Test
    void decode_nonAsciiBytes_isRejected() {
        byte[] value = EVENT.encode();
        value[16] = (byte) 0xE9;
        assertThatThrownBy(() -> BenchmarkEvent.decode(value)).isInstanceOf(NotABenchmarkEventException.class);
    }

    @Test
    void randomRun_isARunAndDiffers() {
        Set<String> runs = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            runs.add(BenchmarkEvent.randomRun());
        }
        assertThat(runs).hasSizeGreaterThan(90).allMatch(BenchmarkEvent::isRun);
    }
}
