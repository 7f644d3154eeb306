package io.eventsql.eventsdb;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/** Selects free ports of the loopback address for servers. */
final class FreePorts {
    static final int ATTEMPTS = 20;

    private FreePorts() {}

    /** Starts a server on a port. */
    @FunctionalInterface
    interface ServerStart {
        /**
         * Starts the server.
         *
         * @throws Postmaster.PortTakenException if another process listens on the port
         */
        void start(int port) throws IOException;
    }

    /**
     * Starts a server on the given port, or tries free ports until one works.
     *
     * @param given the port; 0 for a free one
     * @return the port
     */
    static int launch(int given, ServerStart server) throws IOException {
        for (int attempt = 1; ; attempt++) {
            int port = given == 0 ? findFree() : given;
            try {
                server.start(port);
                return port;
            } catch (Postmaster.PortTakenException e) {
                if (given != 0 || attempt == ATTEMPTS) {
                    throw e;
                }
            }
        }
    }

    /** Returns a free port below the ephemeral port range, so that it is still free after a crash. */
    private static int findFree() throws IOException {
        for (int attempt = 0; attempt < 1000; attempt++) {
            int candidate = ThreadLocalRandom.current().nextInt(15_000, 32_000);
            try (var socket = new ServerSocket(candidate, 1, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}))) {
                return socket.getLocalPort();
            } catch (BindException e) {
                // Taken, so try the next one.
            }
        }
        throw new IOException("no free port between 15000 and 32000");
    }
}
