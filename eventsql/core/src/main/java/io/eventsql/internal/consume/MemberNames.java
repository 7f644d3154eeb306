package io.eventsql.internal.consume;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.atomic.AtomicInteger;

/** How members of this process are called in the database, for people. */
final class MemberNames {
    private static final AtomicInteger STARTED = new AtomicInteger();
    private static final String PROCESS = host() + "/" + ProcessHandle.current().pid();

    private MemberNames() {}

    /** Host, process and a number in it. */
    static String next() {
        return PROCESS + "/" + STARTED.incrementAndGet();
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown-host";
        }
    }
}
