package io.eventsql.eventsdb;

import java.security.SecureRandom;
import java.util.HexFormat;

/** Creates random passwords for short-lived servers. */
final class Passwords {

    private static final SecureRandom RANDOM = new SecureRandom();

    private Passwords() {}

    static String random() {
        byte[] bytes = new byte[16];
        RANDOM.nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
