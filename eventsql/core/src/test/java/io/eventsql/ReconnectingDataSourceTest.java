package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ReconnectingDataSourceTest {
    private static final Connection CONNECTION = (Connection) Proxy.newProxyInstance(
            ReconnectingDataSourceTest.class.getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, args) -> {
                throw new UnsupportedOperationException(method.getName());
            });

    private final AtomicInteger attempts = new AtomicInteger();
    private volatile @Nullable SQLException failure;

    private ReconnectingDataSource dataSource(Duration maxWait) {
        DataSource server = (DataSource) Proxy.newProxyInstance(
                ReconnectingDataSourceTest.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, args) -> {
                    attempts.incrementAndGet();
                    SQLException reason = failure;
                    if (reason != null) {
                        throw reason;
                    }
                    return CONNECTION;
                });
        return ReconnectingDataSource.of(server, maxWait);
    }

    @ParameterizedTest
    @ValueSource(strings = {"08001", "08006", "57P01", "57P03"})
    void getConnection_serverIsDown_waitsUntilItIsBack(String state) throws Exception {
        failure = new SQLException("down", state);
        ReconnectingDataSource dataSource = dataSource(Duration.ofMinutes(1));
        CompletableFuture<Connection> connecting = CompletableFuture.supplyAsync(() -> {
            try {
                return dataSource.getConnection();
            } catch (SQLException e) {
                throw new AssertionError(e);
            }
        });
        await().until(() -> attempts.get() >= 3);
        assertThat(connecting).isNotDone();
        failure = null;
        assertThat(connecting.get(1, TimeUnit.MINUTES) == CONNECTION).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"08004", "28P01", "3D000", "53300"})
    void getConnection_serverRejects_failsAtOnce(String state) {
        SQLException reason = new SQLException("rejected", state);
        failure = reason;
        assertThatThrownBy(() -> dataSource(Duration.ofMinutes(1)).getConnection())
                .isSameAs(reason);
        assertThat(attempts).hasValue(1);
    }

    @Test
    void getConnection_serverRejectsWithoutState_failsAtOnce() {
        failure = new SQLException("rejected");
        assertThatThrownBy(() -> dataSource(Duration.ofMinutes(1)).getConnection())
                .isSameAs(failure);
        assertThat(attempts).hasValue(1);
    }

    @Test
    void getConnection_serverStaysDown_failsAfterTheWait() {
        failure = new SQLException("down", "08001");
        assertThatThrownBy(() -> dataSource(Duration.ofMillis(300)).getConnection())
                .isSameAs(failure);
        assertThat(attempts).hasValueGreaterThan(1);
    }

    @Test
    void getConnection_interrupted_failsAtOnceAndKeepsTheFlag() {
        failure = new SQLException("down", "08001");
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> dataSource(Duration.ofMinutes(1)).getConnection())
                .isSameAs(failure);
        assertThat(Thread.interrupted()).isTrue();
        assertThat(attempts).hasValue(1);
    }

    @Test
    void of_waitOutOfRange_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> dataSource(Duration.ofSeconds(61)))
                .withMessageContaining("maxWait");
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> dataSource(Duration.ofMillis(-1)))
                .withMessageContaining("maxWait");
    }
}
