package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSqlTarget;
import java.sql.SQLException;

/** EventSQL on the databases of the environment. Thread-safe. */
class EventSqlDriver implements Driver {
    final EventSqlStreams streams;

    EventSqlDriver(EventSqlStreams streams) {
        this.streams = streams;
    }

    @Override
    public String version() throws SQLException {
        return streams.version();
    }

    @Override
    public void createStream(String name, int partitions) {
        streams.create(name, partitions);
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new EventSqlTarget(streams.eventSql().publisher(), stream);
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
        return streams.consume(stream, consumer, listener);
    }

    @Override
    public void clear(String stream) throws InterruptedException {
        streams.clear(stream);
    }

    @Override
    public void close() {
        streams.close();
    }
}
