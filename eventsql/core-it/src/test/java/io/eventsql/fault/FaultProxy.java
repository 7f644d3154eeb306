package io.eventsql.fault;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A TCP proxy on the loopback address in front of a PostgreSQL server, whose network can be made to fail. Thread-safe.
 *
 * <p>Single requests are told apart by a text in them ({@link #planRequests}); connections that are to be told apart so
 * must send the SQL with every request, which {@code prepareThreshold=0} in the JDBC URL ({@link #jdbcUrl()}) does.
 */
final class FaultProxy implements AutoCloseable {
    /** The text of a COMMIT, with the byte that ends a statement: others hold {@code READ COMMITTED}. */
    static final String COMMIT = "COMMIT\0";

    private static final int CHUNK_BYTES = 64 << 10;

    private final String host;
    private final int port;
    private final String database;
    private final int ownPort;
    private final Set<Link> links = ConcurrentHashMap.newKeySet();
    private final AtomicInteger requests = new AtomicInteger();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private boolean blackhole;
    private volatile boolean closed;
    private volatile long delayNanos;
    private volatile String marker = "";
    private volatile IntFunction<@Nullable RequestFault> plan = number -> null;
    private volatile @Nullable ServerSocket listening;

    /** What happens to one request. */
    enum RequestFault {
        /** Cut before any of it reached the server: not executed. */
        CUT_BEFORE_REQUEST,
        /** Cut after the first half of its first packet: not executed. */
        CUT_WITHIN_REQUEST,
        /** Forwarded, then cut at once: executed or not, perhaps later than what is sent next. */
        CUT_AFTER_REQUEST,
        /** Forwarded, and cut when the response arrives: executed, but the client does not know. */
        CUT_BEFORE_RESPONSE,
        /** Forwarded, and cut after the first half of the response. */
        CUT_WITHIN_RESPONSE,
        /** Held back in the proxy, with the connection open, until {@link #heal} or {@link #releaseHeld}. */
        HOLD_REQUEST,
        /** Forwarded and executed; the response is held back in the same way. */
        HOLD_RESPONSE
    }

    private FaultProxy(URI server) throws IOException {
        host = server.getHost();
        port = server.getPort();
        database = server.getPath();
        ServerSocket socket = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
        ownPort = socket.getLocalPort();
        listen(socket);
    }

    /** A proxy in front of the server and database of a JDBC URL. */
    static FaultProxy to(String jdbcUrl) {
        try {
            return new FaultProxy(URI.create(jdbcUrl.substring("jdbc:".length())));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The way to the same database through the proxy; every request carries its SQL. */
    String jdbcUrl() {
        return "jdbc:postgresql://127.0.0.1:" + ownPort + database + "?prepareThreshold=0";
    }

    /** How many connections are open on which a request or a response was held, whether it still is or not. */
    long heldConnections() {
        return links.stream().filter(link -> link.wasHeld).count();
    }

    /** How many requests with the planned text came by. */
    int requests() {
        return requests.get();
    }

    /**
     * From now on decides about each request that contains the text.
     *
     * @param newPlan gets the number of such a request, from 1; {@code null}: it passes
     */
    void planRequests(String text, IntFunction<@Nullable RequestFault> newPlan) {
        requests.set(0);
        marker = text;
        plan = newPlan;
    }

    /** Cuts all open connections, both ways at once. */
    void cut() {
        links.forEach(Link::cut);
    }

    /** Refuses new connections until {@link #heal}; open ones stay. */
    void refuse() {
        ServerSocket socket = listening;
        listening = null;
        closeQuietly(socket);
    }

    /** Connections are accepted and stay open, but nothing is forwarded in either direction until {@link #heal}. */
    void blackhole() {
        setBlackhole(true);
    }

    /** Each packet is forwarded so much later. */
    void delay(Duration value) {
        delayNanos = value.toNanos();
    }

    /** Lets go what {@link RequestFault#HOLD_REQUEST} holds, even of connections that the client has given up. */
    void releaseHeld() {
        links.forEach(Link::release);
    }

    /** Ends all faults, also planned ones; what a blackhole held is forwarded now, as after a broken cable. */
    void heal() {
        plan = number -> null;
        delayNanos = 0;
        setBlackhole(false);
        releaseHeld();
        if (listening == null && !closed) {
            try {
                ServerSocket socket = new ServerSocket();
                socket.setReuseAddress(true);
                bind(socket);
                listen(socket);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    @Override
    public void close() {
        closed = true;
        refuse();
        cut();
        setBlackhole(false);
    }

    private void bind(ServerSocket socket) throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), ownPort), 200);
                return;
            } catch (BindException e) { // somebody's outgoing port for the moment
                if (attempt == 50) {
                    throw e;
                }
                pause(TimeUnit.MILLISECONDS.toNanos(100));
            }
        }
    }

    private void listen(ServerSocket socket) {
        listening = socket;
        Thread.ofVirtual().name("fault-proxy-accept").start(() -> {
            while (!socket.isClosed()) {
                try {
                    Link link = new Link(socket.accept());
                    link.start();
                    if (socket.isClosed()) { // refused while it was being made: cut() did not see it
                        link.cut();
                    }
                } catch (IOException e) {
                    // Refusing, or the server is down: the client sees its connection closed.
                    continue;
                }
            }
        });
    }

    private void setBlackhole(boolean value) {
        lock.lock();
        try {
            blackhole = value;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private static void pause(long nanos) {
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void closeQuietly(@Nullable AutoCloseable closeable) {
        try {
            if (closeable != null) {
                closeable.close();
            }
        } catch (Exception e) {
            // It is closed in any case.
            return;
        }
    }

    /** One connection through the proxy. */
    private final class Link {
        private final Socket client;
        private final Socket server;
        private volatile @Nullable RequestFault responseFault;
        private boolean held;
        private volatile boolean wasHeld;

        Link(Socket client) throws IOException {
            this.client = client;
            try {
                this.server = new Socket(host, port);
            } catch (IOException e) {
                closeQuietly(client);
                throw e;
            }
            client.setTcpNoDelay(true);
            server.setTcpNoDelay(true);
        }

        void start() {
            links.add(this);
            Thread.ofVirtual().name("fault-proxy-up").start(() -> pump(client, server, true));
            Thread.ofVirtual().name("fault-proxy-down").start(() -> pump(server, client, false));
        }

        private void pump(Socket from, Socket to, boolean requestsPass) {
            byte[] chunk = new byte[CHUNK_BYTES];
            try (InputStream in = from.getInputStream();
                    OutputStream out = to.getOutputStream()) {
                awaitOpen();
                for (int size = in.read(chunk); size >= 0; size = in.read(chunk)) {
                    awaitOpen();
                    if (delayNanos > 0) {
                        pause(delayNanos);
                    }
                    boolean goesOn =
                            requestsPass ? forwardRequest(chunk, size, out) : forwardResponse(chunk, size, out);
                    if (!goesOn) {
                        cut();
                        return;
                    }
                }
            } catch (IOException e) {
                // Either side is gone, so the other one goes, too.
                links.remove(this);
            } finally {
                close();
            }
        }

        private boolean forwardRequest(byte[] chunk, int size, OutputStream out) throws IOException {
            RequestFault fault = null;
            if (!marker.isEmpty() && new String(chunk, 0, size, StandardCharsets.ISO_8859_1).contains(marker)) {
                fault = plan.apply(requests.incrementAndGet());
            }
            if (fault == null) {
                out.write(chunk, 0, size);
                return true;
            }
            switch (fault) {
                case CUT_BEFORE_REQUEST -> {
                    return false;
                }
                case CUT_WITHIN_REQUEST -> {
                    out.write(chunk, 0, size / 2);
                    return false;
                }
                case CUT_AFTER_REQUEST -> {
                    out.write(chunk, 0, size);
                    // In an orderly way to the server: it reads what was sent, and may well commit it.
                    client.setSoLinger(true, 0);
                    client.close();
                    server.shutdownOutput();
                    return true;
                }
                case CUT_BEFORE_RESPONSE, CUT_WITHIN_RESPONSE, HOLD_RESPONSE -> {
                    responseFault = fault;
                    out.write(chunk, 0, size);
                }
                case HOLD_REQUEST -> {
                    hold();
                    out.write(chunk, 0, size);
                }
            }
            return true;
        }

        private boolean forwardResponse(byte[] chunk, int size, OutputStream out) throws IOException {
            RequestFault fault = responseFault;
            if (fault == RequestFault.CUT_BEFORE_RESPONSE) {
                return false;
            }
            if (fault == RequestFault.CUT_WITHIN_RESPONSE) {
                out.write(chunk, 0, size / 2);
                out.flush();
                return false;
            }
            if (fault == RequestFault.HOLD_RESPONSE) {
                responseFault = null;
                hold();
            }
            out.write(chunk, 0, size);
            return true;
        }

        private void awaitOpen() {
            lock.lock();
            try {
                while (blackhole && !closed) {
                    changed.awaitUninterruptibly();
                }
            } finally {
                lock.unlock();
            }
        }

        private void hold() {
            lock.lock();
            try {
                held = true;
                wasHeld = true;
                while (held && !closed) {
                    changed.awaitUninterruptibly();
                }
            } finally {
                lock.unlock();
            }
        }

        void release() {
            lock.lock();
            try {
                held = false;
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }

        /** Both sides get a reset, as when a router drops its state. */
        void cut() {
            try {
                client.setSoLinger(true, 0);
                server.setSoLinger(true, 0);
            } catch (IOException e) {
                // One of them is closed already.
                links.remove(this);
            }
            close();
        }

        private void close() {
            links.remove(this);
            closeQuietly(client);
            closeQuietly(server);
        }
    }
}
