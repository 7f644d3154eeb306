package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/** A server that accepts connections and then sends nothing more, as one that hangs. */
class SilentServerTest {
    private static final int SSL_REQUEST_BYTES = 8;

    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void connect_serverDoesNotAnswer_fails() throws Exception {
        ReaderSettings settings = ReaderSettings.defaults().withNetworkTimeout(Duration.ofSeconds(1));
        try (ServerSocket server = new ServerSocket(0)) {
            Thread.ofVirtual().start(() -> declineEncryption(server));
            List<String> urls = List.of("jdbc:postgresql://127.0.0.1:" + server.getLocalPort() + "/none");
            assertThatExceptionOfType(DatabaseUnavailableException.class)
                    .isThrownBy(() -> EventReader.connect(urls, "user", "password", settings));
        }
    }

    /** Answers the first request of a connection, and reads what follows until the client closes it. */
    private static void declineEncryption(ServerSocket server) {
        try (Socket client = server.accept()) {
            client.getInputStream().readNBytes(SSL_REQUEST_BYTES);
            client.getOutputStream().write('N');
            client.getInputStream().transferTo(OutputStream.nullOutputStream());
        } catch (IOException e) {
            return; // the client has ended the connection, or the test its server
        }
    }
}
