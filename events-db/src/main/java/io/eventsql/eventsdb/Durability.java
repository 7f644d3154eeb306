package io.eventsql.eventsdb;

import java.util.List;

/** The settings without which a commit promises nothing. */
final class Durability {

    static final List<String> SETTINGS = List.of("fsync", "synchronous_commit", "full_page_writes");

    private Durability() {}

    /** @throws IllegalStateException unless the running server, asked as the library's own role, has all of them on */
    static void require(EventsDb eventsDb) {
        for (String setting : SETTINGS) {
            String value = eventsDb.show(setting);
            if (!value.equals("on")) {
                throw new IllegalStateException("the server is not durable: " + setting + " is " + value);
            }
        }
    }
}
