package io.eventsql.eventsdb;

import java.util.List;

/** The settings required for durable commits. */
final class Durability {

    static final List<String> SETTINGS = List.of("fsync", "synchronous_commit", "full_page_writes");

    private Durability() {}

    /** @throws IllegalStateException unless all of them are on, as seen by the library's role */
    static void require(EventsDb eventsDb) {
        for (String setting : SETTINGS) {
            String value = eventsDb.show(setting);
            if (!value.equals("on")) {
                throw new IllegalStateException("the server is not durable: " + setting + " is " + value);
            }
        }
    }
}
