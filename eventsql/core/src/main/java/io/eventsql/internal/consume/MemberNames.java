package io.eventsql.internal.consume;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** How members of this process are called in the database, for people. */
final class MemberNames {
    /** Host and process. */
    static final String PROCESS = host() + "/" + ProcessHandle.current().pid();

    private MemberNames() {}

    private static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown-host";
        }
    }
}
