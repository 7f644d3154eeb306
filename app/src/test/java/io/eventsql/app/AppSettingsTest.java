package io.eventsql.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.InvalidSettingException;
import io.eventsql.benchmark.settings.Variables;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AppSettingsTest {
    private final Map<String, String> environment = new HashMap<>(Map.of("DB0_HOST", "a", "DB0_PASSWORD", "p"));

    @Test
    void read_onlyADatabase_usesDefaults() {
        AppSettings settings = read();

        assertThat(settings.stream()).isEqualTo(StreamSpec.of("account_created").withPartitions(10));
        assertThat(settings.consumer()).isEqualTo(ConsumerSpec.of("account_created", "app"));
        assertThat(settings.shards()).hasSize(1);
        assertThat(settings.poolSize()).isEqualTo(16);
        assertThat(settings.portFile()).isNull();
    }

    @Test
    void read_everythingSet_usesIt() {
        environment.putAll(Map.of(
                "STREAM", "orders",
                "PARTITIONS", "4",
                "CONSUMER", "billing",
                "PAGE_EVENTS", "250",
                "DB_POOL_SIZE", "3",
                "PORT_FILE", "run/port"));

        AppSettings settings = read();

        assertThat(settings.stream()).isEqualTo(StreamSpec.of("orders").withPartitions(4));
        assertThat(settings.consumer())
                .isEqualTo(ConsumerSpec.of("orders", "billing").withPageEvents(250));
        assertThat(settings.poolSize()).isEqualTo(3);
        assertThat(settings.portFile()).isEqualTo(Path.of("run", "port"));
    }

    @Test
    void read_blankVariables_countAsNotSet() {
        environment.putAll(Map.of("STREAM", "", "PARTITIONS", " ", "PORT_FILE", ""));

        assertThat(read().stream()).isEqualTo(StreamSpec.of("account_created"));
        assertThat(read().portFile()).isNull();
    }

    @ParameterizedTest
    @CsvSource({
        "PARTITIONS, 0, 1 and 1000",
        "PARTITIONS, 1001, 1 and 1000",
        "PAGE_EVENTS, 0, 1 and 100000",
        "PAGE_EVENTS, many, 1 and 100000",
        "DB_POOL_SIZE, 0, 1 and 1000",
        "DB_POOL_SIZE, 1.5, 1 and 1000",
    })
    void read_numberOutOfRange_isRejected(String variable, String value, String range) {
        environment.put(variable, value);

        assertThatThrownBy(this::read)
                .isInstanceOf(InvalidSettingException.class)
                .hasMessage(variable + " must be an integer between " + range + ", but is '" + value + "'");
    }

    @ParameterizedTest
    @CsvSource({"STREAM, account created", "CONSUMER, app__1"})
    void read_nameRejectedByTheLibrary_namesTheVariable(String variable, String value) {
        environment.put(variable, value);

        assertThatThrownBy(this::read)
                .isInstanceOf(InvalidSettingException.class)
                .hasMessageStartingWith(variable + " is invalid: ")
                .hasMessageContaining("'" + value + "'");
    }

    private AppSettings read() {
        return AppSettings.read(new Variables(environment::get));
    }
}
