package io.eventsql.eventsdb;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class InitSqlTest {

    @Test
    void statements_quotesThePasswordAndSplits() {
        assertThat(InitSql.statements(Resources.text("init.sql"), "it's"))
                .containsExactly(
                        "CREATE ROLE eventsql LOGIN PASSWORD 'it''s'",
                        "CREATE DATABASE eventsql OWNER eventsql",
                        "ALTER DATABASE eventsql SET timezone TO 'UTC'");
    }
}
