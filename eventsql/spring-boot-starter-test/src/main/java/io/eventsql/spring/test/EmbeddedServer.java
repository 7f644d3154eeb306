package io.eventsql.spring.test;

import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.EventsDb;
import org.springframework.boot.SpringApplication;

/** The servers of this JVM: each starts on first use and stops with the JVM. */
final class EmbeddedServer {
    /** Cached contexts keep their pools. */
    private static final String CONNECTIONS_MAX = "500";

    private EmbeddedServer() {}

    /** Returns the server of the kind that {@link EventsDb#DATABASE_PROPERTY} selects. */
    static EventsDb get(boolean durable) {
        boolean notEmbedded =
                !System.getProperty(EventsDb.DATABASE_PROPERTY, "embedded").equals("embedded");
        if (notEmbedded) {
            return NotEmbedded.SERVER;
        }
        return durable ? Durable.SERVER : Fast.SERVER;
    }

    private static final class NotEmbedded {
        static final EventsDb SERVER = EventsDb.start();
    }

    private static final class Durable {
        static final EventsDb SERVER = start(true);
    }

    private static final class Fast {
        static final EventsDb SERVER = start(false);
    }

    /** Stopped after the applications: one that is closed later would wait for it. */
    private static EventsDb start(boolean durable) {
        EmbeddedEventsDb server = EmbeddedEventsDb.builder()
                .durable(durable)
                .setting("max_connections", CONNECTIONS_MAX)
                .stopsAtExit(false)
                .start();
        SpringApplication.getShutdownHandlers().add(server::close);
        return server;
    }
}
