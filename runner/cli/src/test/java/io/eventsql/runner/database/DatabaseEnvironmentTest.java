package io.eventsql.runner.database;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class DatabaseEnvironmentTest {

    @Test
    void addresses_numberedHosts_takeTheirDefaults() {
        assertThat(addresses(Map.of(
                        "DB0_HOST",
                        "a",
                        "DB0_PASSWORD",
                        "p",
                        "DB1_HOST",
                        "b",
                        "DB1_PORT",
                        "6543",
                        "DB1_NAME",
                        "n",
                        "DB1_USER",
                        "u")))
                .containsExactly(
                        new DatabaseAddress("jdbc:postgresql://a:5432/eventsql", "eventsql", "p"),
                        new DatabaseAddress("jdbc:postgresql://b:6543/n", "u", ""));
    }

    @Test
    void addresses_urls_areSplitBetweenDatabasesNotBetweenTheirHosts() {
        assertThat(addresses(Map.of(
                        "DB_URLS",
                        "jdbc:postgresql://a,b/x, jdbc:postgresql://c/x",
                        "DB_USER",
                        "u",
                        "DB_PASSWORD",
                        "p")))
                .containsExactly(
                        new DatabaseAddress("jdbc:postgresql://a,b/x", "u", "p"),
                        new DatabaseAddress("jdbc:postgresql://c/x", "u", "p"));
    }

    @Test
    void addresses_none_saysWhatToSet() {
        assertThatThrownBy(() -> addresses(Map.of("DB0_HOST", " "))).hasMessageContaining("DB0_HOST");
    }

    @Test
    void addresses_gap_isRefused() {
        assertThatThrownBy(() -> addresses(Map.of("DB0_HOST", "a", "DB2_HOST", "c")))
                .hasMessage("DB2_HOST is set, but DB1_HOST is not; number the databases from 0");
    }

    @Test
    void addresses_bothForms_areRefused() {
        assertThatThrownBy(() -> addresses(Map.of("DB0_HOST", "a", "DB_URLS", "jdbc:postgresql://a/x")))
                .hasMessageContaining("set only one");
    }

    @Test
    void addresses_wrongPort_namesTheVariableAndTheLimit() {
        assertThatThrownBy(() -> addresses(Map.of("DB0_HOST", "a", "DB0_PORT", "70000")))
                .hasMessage("DB0_PORT must be a number between 1 and 65535, but is '70000'");
    }

    @Test
    void addresses_otherDatabase_isRefused() {
        assertThatThrownBy(() -> addresses(Map.of("DB_URLS", "jdbc:mysql://a/x")))
                .hasMessageContaining("jdbc:postgresql:");
    }

    @Test
    void toString_hidesThePassword() {
        assertThat(new DatabaseAddress("jdbc:postgresql://a/x", "u", "secret").toString())
                .doesNotContain("secret");
    }

    private static List<DatabaseAddress> addresses(Map<String, String> environment) {
        return new DatabaseEnvironment(environment).addresses();
    }
}
