package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.eventsdb.EventsDb;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What the auto-configuration makes of an application's beans and properties. */
class EventSqlAutoConfigurationIT {
    private static EventsDb eventsDb;

    private final ApplicationContextRunner application =
            new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(EventSqlAutoConfiguration.class));

    @BeforeAll
    static void startDatabase() {
        eventsDb = EventsDb.start();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    @Test
    void dataSource_one_isTheOnlyShard() {
        application
                .withBean(DataSource.class, () -> eventsDb.dataSource())
                .run(context ->
                        assertThat(context.getBean(EventSql.class).shards()).hasSize(1));
    }

    @Test
    void dataSource_none_backsOff() {
        application.run(context -> assertThat(context).doesNotHaveBean(EventSql.class));
    }
}
