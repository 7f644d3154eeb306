package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.SocketFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * The isolation level of the pools of {@code eventsql.shards}. The sockets of the driver record its statements on the
 * level, and close while a pool reads the level.
 */
class ShardPoolsIsolationIT extends AutoConfigurationFixture {
    private static final String READ_LEVEL = "SHOW TRANSACTION ISOLATION LEVEL";
    private static final String SET_LEVEL = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL";

    private static final AtomicInteger CUTS_LEFT = new AtomicInteger();
    private static final List<String> STATEMENTS = new CopyOnWriteArrayList<>();

    /** Found by the driver by its name. */
    public static final class RecordingSockets extends SocketFactory {
        @Override
        public Socket createSocket() {
            return new RecordingSocket();
        }

        @Override
        public Socket createSocket(String host, int port) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(String host, int port, InetAddress localHost, int localPort) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(InetAddress host, int port) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Socket createSocket(InetAddress address, int port, InetAddress localAddress, int localPort) {
            throw new UnsupportedOperationException();
        }
    }

    private static final class RecordingSocket extends Socket {
        @Override
        public OutputStream getOutputStream() throws IOException {
            return new FilterOutputStream(super.getOutputStream()) {
                @Override
                public void write(byte[] bytes, int offset, int length) throws IOException {
                    String request = new String(bytes, offset, length, StandardCharsets.ISO_8859_1);
                    if (request.contains(SET_LEVEL)) {
                        STATEMENTS.add(SET_LEVEL);
                    }
                    if (request.contains(READ_LEVEL)) {
                        STATEMENTS.add(READ_LEVEL);
                        if (CUTS_LEFT.getAndUpdate(cuts -> Math.max(0, cuts - 1)) > 0) {
                            RecordingSocket.this.close();
                        }
                    }
                    out.write(bytes, offset, length);
                }
            };
        }
    }

    @BeforeEach
    void reset() {
        CUTS_LEFT.set(0);
        STATEMENTS.clear();
    }

    private ApplicationContextRunner oneShard() {
        return withShards(1)
                .withPropertyValues(
                        "eventsql.shards.a.hikari.data-source-properties.socketFactory="
                                + RecordingSockets.class.getName(),
                        "eventsql.streams.orders.partitions=1");
    }

    /** HikariCP issue 1944: a pool without a level asks the driver for the level -1 from then on. */
    @Test
    void pool_firstConnectionCutWhileItsLevelIsRead_opensOthers() {
        CUTS_LEFT.set(1);
        oneShard().run(context -> {
            assertThat(context).hasNotFailed();
            context.getBean(EventPublisher.class).publish("orders", Event.ofText("x"));
            assertThat(CUTS_LEFT).hasValue(0);
            assertThat(STATEMENTS).containsSubsequence(READ_LEVEL, SET_LEVEL);
        });
    }

    @Test
    void pool_levelIsTheDefault_setsItOnNoConnection() {
        oneShard().run(context -> {
            context.getBean(EventPublisher.class).publish("orders", Event.ofText("x"));
            assertThat(STATEMENTS).containsExactly(READ_LEVEL);
        });
    }

    @Test
    void pool_levelOfTheProperties_wins() {
        oneShard()
                .withPropertyValues("eventsql.shards.a.hikari.transaction-isolation=TRANSACTION_SERIALIZABLE")
                .run(context -> {
                    HikariDataSource pool =
                            (HikariDataSource) context.getBean(ShardPools.class).dataSource("a");
                    assertThat(new JdbcTemplate(pool).queryForObject("SHOW transaction_isolation", String.class))
                            .isEqualTo("serializable");
                });
    }
}
