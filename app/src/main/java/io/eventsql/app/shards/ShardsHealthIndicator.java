package io.eventsql.app.shards;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;

/** Up while every shard's database answers; the details say which does. Thread-safe. */
public final class ShardsHealthIndicator implements HealthIndicator {
    private static final Logger log = LoggerFactory.getLogger(ShardsHealthIndicator.class);
    private static final int ANSWER_SECONDS_MAX = 2;

    private final List<DataSource> dataSources;

    /** @param dataSources one for each shard, in the order of the settings */
    public ShardsHealthIndicator(List<DataSource> dataSources) {
        this.dataSources = List.copyOf(dataSources);
    }

    @Override
    public Health health() {
        Health.Builder health = Health.up();
        for (int number = 0; number < dataSources.size(); number++) {
            Status status = status(number);
            health.withDetail("DB" + number, status.getCode());
            if (status.equals(Status.DOWN)) {
                health.down();
            }
        }
        return health.build();
    }

    private Status status(int number) {
        try (Connection connection = dataSources.get(number).getConnection()) {
            return connection.isValid(ANSWER_SECONDS_MAX) ? Status.UP : Status.DOWN;
        } catch (SQLException e) {
            log.warn("DB{} does not answer: {}", number, e.toString());
            return Status.DOWN;
        }
    }
}
