package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;

/** The test's database has precedence over other connection details, such as those of a {@code @ServiceConnection}. */
@EventSqlTest
class OtherConnectionDetailsIT {
    @TestConfiguration(proxyBeanMethods = false)
    static class Container {
        @Bean
        JdbcConnectionDetails containerConnectionDetails() {
            return new JdbcConnectionDetails() {
                @Override
                public String getUsername() {
                    return "unknown";
                }

                @Override
                public String getPassword() {
                    return "";
                }

                @Override
                public String getJdbcUrl() {
                    return "jdbc:postgresql://nowhere/none";
                }
            };
        }
    }

    @Test
    void dataSource_isTheEmbeddedDatabase(@Autowired JdbcTemplate jdbc) {
        assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                .endsWith("otherconnectiondetailsit");
    }
}
