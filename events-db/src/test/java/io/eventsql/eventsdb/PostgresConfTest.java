package io.eventsql.eventsdb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.api.Test;

class PostgresConfTest {

    @Test
    void load_containsTheDurableSettings() {
        assertThat(PostgresConf.load().settings())
                .containsEntry("fsync", "on")
                .containsEntry("synchronous_commit", "on")
                .containsEntry("full_page_writes", "on");
    }

    @Test
    void postgresqlConf_everySettingHasAComment() {
        assertThat(Resources.text("postgresql.conf")
                        .lines()
                        .filter(line -> line.contains("=") && !line.startsWith("#")))
                .isNotEmpty()
                .allMatch(line -> line.matches(".*\\s# \\S.*"));
    }

    @Test
    void parse_unquotesAndIgnoresComments() {
        var conf = PostgresConf.parse("# a = 1\n\nlog_line_prefix = '%m # it''s '  # why\nwork_mem = 8MB # why\n");

        assertThat(conf.settings()).isEqualTo(Map.of("log_line_prefix", "%m # it's ", "work_mem", "8MB"));
        assertThat(conf.text()).isEqualTo("log_line_prefix = '%m # it''s '\nwork_mem = '8MB'\n");
    }

    @Test
    void parse_somethingElse_isRejected() {
        assertThatThrownBy(() -> PostgresConf.parse("work_mem 8MB")).hasMessageContaining("work_mem 8MB");
        assertThatThrownBy(() -> PostgresConf.parse("a = 1\na = 2")).hasMessageContaining("set twice: a");
    }

    @Test
    void with_overridesAndAdds() {
        var conf = PostgresConf.parse("a = 1\nb = 2").with(Map.of("b", "3", "c", "4"));

        assertThat(conf.settings()).isEqualTo(Map.of("a", "1", "b", "3", "c", "4"));
    }
}
