package io.eventsql.internal.consume;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.atomic.AtomicInteger;

/** Names of this process's members, by which operators recognise them in the database. */
final class MemberNames {
    private static final AtomicInteger SEQUENCE = new AtomicInteger();
    private static final String PROCESS = host() + "/" + ProcessHandle.current().pid();

    private MemberNames() {}

    /** Creates a name of the host, the process and the member's number in it. */
    static String next() {
        return PROCESS + "/" + SEQUENCE.incrementAndGet();
    }

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown-host";
        }
    }
}
