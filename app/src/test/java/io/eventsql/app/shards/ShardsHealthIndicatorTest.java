package io.eventsql.app.shards;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

class ShardsHealthIndicatorTest {

    @Test
    void health_databaseDoesNotAnswer_isDownAndSaysWhich() throws Exception {
        PGSimpleDataSource nobody = new PGSimpleDataSource();
        nobody.setUrl("jdbc:postgresql://localhost:" + unusedPort() + "/eventsql");

        Health health = new ShardsHealthIndicator(List.of(nobody)).health();

        assertThat(health.getStatus()).isEqualTo(Status.DOWN);
        assertThat(health.getDetails()).isEqualTo(Map.of("DB0", "DOWN"));
    }

    private static int unusedPort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
