package io.eventsql.benchmark.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DatabaseVariablesTest {
    private final Map<String, String> environment = new HashMap<>();

    @Test
    void read_oneHost_usesDefaults() {
        set("DB0_HOST", "db.example.com", "DB0_PASSWORD", "secret");

        assertThat(DatabaseVariables.read(new Variables(environment::get)))
                .containsExactly(
                        new DatabaseAddress("jdbc:postgresql://db.example.com:5432/eventsql", "eventsql", "secret"));
    }

    @Test
    void read_severalHosts_keepsTheirOrderAndSettings() {
        set("DB0_HOST", "10.0.0.1", "DB0_PASSWORD", " with space ", "DB0_PORT", "15432");
        set("DB1_HOST", "[::1]", "DB1_PASSWORD", "p1", "DB1_NAME", "a/b?c", "DB1_USER", "writer");

        assertThat(DatabaseVariables.read(new Variables(environment::get)))
                .containsExactly(
                        new DatabaseAddress("jdbc:postgresql://10.0.0.1:15432/eventsql", "eventsql", " with space "),
                        new DatabaseAddress("jdbc:postgresql://[::1]:5432/a%2Fb%3Fc", "writer", "p1"));
    }

    @Test
    void read_urls_areSplitOnlyBetweenAddresses() {
        set("DB_URLS", "jdbc:postgresql://a:1,b:2/x?targetServerType=primary , jdbc:postgresql://c/y");
        set("DB_USER", "writer", "DB_PASSWORD", "secret");

        assertThat(DatabaseVariables.read(new Variables(environment::get)))
                .containsExactly(
                        new DatabaseAddress("jdbc:postgresql://a:1,b:2/x?targetServerType=primary", "writer", "secret"),
                        new DatabaseAddress("jdbc:postgresql://c/y", "writer", "secret"));
    }

    @Test
    void readOne_severalDatabases_areRejected() {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p");

        assertThat(DatabaseVariables.readOne(new Variables(environment::get)).jdbcUrl())
                .isEqualTo("jdbc:postgresql://a:5432/eventsql");

        set("DB1_HOST", "b", "DB1_PASSWORD", "p");
        assertThatThrownBy(() -> DatabaseVariables.readOne(new Variables(environment::get)))
                .hasMessage("Exactly one database is required, but 2 are configured");
    }

    @Test
    void read_nothing_saysWhatToSet() {
        assertRejected("DB0_HOST is missing: set DB0_HOST and DB0_PASSWORD, or DB_URLS and DB_PASSWORD");
    }

    @Test
    void read_passwordMissingOrEmpty_isRejected() {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB1_HOST", "b");
        assertRejected("DB1_PASSWORD is missing");

        set("DB1_PASSWORD", "");
        assertRejected("DB1_PASSWORD is missing");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "65536", "-1", "5432x", "99999999999"})
    void read_portOutOfRange_isRejected(String port) {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB0_PORT", port);

        assertRejected("DB0_PORT must be an integer between 1 and 65535, but is '" + port + "'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a/b", "a:5432", "a?ssl=off", "a b", "a,b", "::1"})
    void read_invalidHost_isRejected(String host) {
        set("DB0_HOST", host, "DB0_PASSWORD", "p");

        assertRejected("DB0_HOST must be a host's name or address, but is '" + host + "'");
    }

    @Test
    void read_numbersDoNotBeginAtZero_isRejected() {
        set("DB1_HOST", "a", "DB1_PASSWORD", "p");

        assertRejected("DB1_HOST is set, but DB0_HOST is missing; number the databases from 0 without gaps");
    }

    @Test
    void read_gapInNumbers_isRejected() {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB2_HOST", "c", "DB2_PASSWORD", "p");

        assertRejected("DB2_HOST is set, but DB1_HOST is missing; number the databases from 0 without gaps");
    }

    @Test
    void read_partWithoutHost_isRejected() {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB1_PASSWORD", "q", "DB1_HOST", " ");

        assertRejected("DB1_PASSWORD is set, but DB1_HOST is missing; number the databases from 0 without gaps");
    }

    @Test
    void read_urlsAndHosts_isRejected() {
        set("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB_URLS", "jdbc:postgresql://a/x", "DB_PASSWORD", "p");

        assertRejected("DB_URLS and DB0_HOST are both set; set only one of them");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jdbc:postgresql://a/x,jdbc:mysql://b/y?password=hidden",
                "jdbc:postgresql://a/x,jdbc:postgresql://b:none/y?password=hidden",
            })
    void read_invalidUrl_isRejectedWithoutShowingIt(String urls) {
        set("DB_URLS", urls, "DB_PASSWORD", "p");

        assertRejected("DB_URLS must be URLs like jdbc:postgresql://host:5432/eventsql, separated by commas;"
                + " URL 2 is invalid");
    }

    @Test
    void read_urlsWithoutPassword_isRejected() {
        set("DB_URLS", "jdbc:postgresql://a/x");

        assertRejected("DB_PASSWORD is missing");
    }

    @Test
    void settings_asText_hidePasswords() {
        var settings = new DatabaseAddress("jdbc:postgresql://a/x?password=hidden", "writer", "secret");

        assertThat(settings.toString())
                .contains("jdbc:postgresql://a/x", "writer")
                .doesNotContain("hidden", "secret");
    }

    private void set(String... namesAndValues) {
        for (int i = 0; i < namesAndValues.length; i += 2) {
            environment.put(namesAndValues[i], namesAndValues[i + 1]);
        }
    }

    private void assertRejected(String message) {
        assertThatThrownBy(() -> DatabaseVariables.read(new Variables(environment::get)))
                .isInstanceOf(InvalidSettingException.class)
                .hasMessage(message);
    }
}
