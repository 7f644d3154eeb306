package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.sql.SQLWarning;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.util.PSQLException;
import org.postgresql.util.PSQLState;
import org.postgresql.util.PSQLWarning;
import org.postgresql.util.ServerErrorMessage;

/** The classification of errors and warnings. Severities are in another language throughout, because nothing reads them. */
class SqlErrorsTest {
    @ParameterizedTest
    @CsvSource({
        "08006, IN_DOUBT",
        "08P01, IN_DOUBT",
        "57P01, IN_DOUBT",
        "57P02, IN_DOUBT",
        "57P03, IN_DOUBT",
        "57P04, IN_DOUBT",
        "57P05, IN_DOUBT",
        "58000, IN_DOUBT",
        "58030, IN_DOUBT",
        "40003, IN_DOUBT",
        "XX001, IN_DOUBT",
        "XX002, IN_DOUBT",
        "40001, ENVIRONMENT",
        "40P01, ENVIRONMENT",
        "53100, ENVIRONMENT",
        "53300, ENVIRONMENT",
        "55P03, ENVIRONMENT",
        "57014, ENVIRONMENT",
        "25006, ENVIRONMENT",
        "25P03, ENVIRONMENT",
        "22023, CONTENT",
        "23505, CONTENT",
        "P0001, CONTENT",
        "45000, CONTENT",
        "54000, CONTENT",
        "XX000, CONTENT",
        "0A000, CONTENT",
        "QQ123, CONTENT",
        "ES001, PROTOCOL",
        "ES013, PROTOCOL",
        "42501, PROTOCOL",
        "42P01, PROTOCOL",
        "3F000, PROTOCOL",
        "3D000, PROTOCOL",
    })
    void classify_errorOfServer_dependsOnStateAlone(String state, ErrorKind kind) {
        SQLException error = serverError(state, "");

        assertThat(SqlErrors.classify(error)).isEqualTo(kind);
        assertThat(SqlErrors.classify(new SQLException("wrapped", state, error)))
                .isEqualTo(kind);
    }

    @Test
    void classify_checkViolation_isMissingSegmentOnlyWithoutConstraint() {
        assertThat(SqlErrors.classify(serverError("23514", "tevents_orders__p1\0")))
                .isEqualTo(ErrorKind.PROTOCOL);
        assertThat(SqlErrors.classify(serverError("23514", "tevents_orders\0npositive\0")))
                .isEqualTo(ErrorKind.CONTENT);
        assertThat(SqlErrors.classify(serverError("23514", "tsegment\0")))
                .as("of blocks")
                .isEqualTo(ErrorKind.PROTOCOL);
        assertThat(SqlErrors.classify(serverError("23514", "taudit\0")))
                .as("a table of the application")
                .isEqualTo(ErrorKind.CONTENT);
        assertThat(SqlErrors.classify(serverError("23514", "")))
                .as("of a trigger")
                .isEqualTo(ErrorKind.CONTENT);
    }

    @Test
    void classify_errorOfDriver_isInDoubt() {
        assertThat(SqlErrors.classify(new PSQLException("I/O error", PSQLState.CONNECTION_FAILURE, new EOFException())))
                .isEqualTo(ErrorKind.IN_DOUBT);
        assertThat(SqlErrors.classify(
                        new PSQLException("timed out", PSQLState.CONNECTION_FAILURE, new SocketTimeoutException())))
                .isEqualTo(ErrorKind.IN_DOUBT);
        assertThat(SqlErrors.classify(new PSQLException("unreadable result", PSQLState.NUMERIC_VALUE_OUT_OF_RANGE)))
                .as("raised after the statement was executed")
                .isEqualTo(ErrorKind.IN_DOUBT);
        assertThat(SqlErrors.classify(new SQLException("Connection is closed"))).isEqualTo(ErrorKind.IN_DOUBT);
    }

    @Test
    void classify_noConnection_isNotSent() {
        SQLException refused = new PSQLException("refused", PSQLState.CONNECTION_UNABLE_TO_CONNECT);

        assertThat(SqlErrors.classify(new NotSentException(refused))).isEqualTo(ErrorKind.NOT_SENT);
        assertThat(SqlErrors.classify(new SQLException("wrapped", "08001", new NotSentException(refused))))
                .isEqualTo(ErrorKind.NOT_SENT);
        assertThat(SqlErrors.classify(new NotSentException(new IllegalStateException("no current tenant"))))
                .isEqualTo(ErrorKind.NOT_SENT);
    }

    /** The shard that was asked responds, whatever is wrong with the one that may have the stream. */
    @Test
    void classify_streamIsPending_isEnvironment() {
        SQLException refused = new PSQLException("refused", PSQLState.CONNECTION_UNABLE_TO_CONNECT);
        StreamPendingException pending = new StreamPendingException(new NotSentException(refused));

        assertThat(SqlErrors.classify(pending)).isEqualTo(ErrorKind.ENVIRONMENT);
        assertThat(SqlErrors.classify(new SQLException("wrapped", pending))).isEqualTo(ErrorKind.ENVIRONMENT);
    }

    @Test
    void isRaisedByRows_onlyCodesOfRows() {
        assertThat(SqlErrors.isRaisedByRows(serverError("P0001", ""))).isTrue();
        assertThat(SqlErrors.isRaisedByRows(serverError("54000", ""))).isTrue();
        assertThat(SqlErrors.isRaisedByRows(serverError("XX000", ""))).isFalse();
        assertThat(SqlErrors.isRaisedByRows(serverError("23514", "tevents_orders__p1\0")))
                .as("a missing segment, which may be there when a late attempt arrives")
                .isFalse();
        assertThat(SqlErrors.isRaisedByRows(new PSQLException("unreadable", PSQLState.NUMERIC_VALUE_OUT_OF_RANGE)))
                .as("of the driver")
                .isFalse();
    }

    @ParameterizedTest
    @ValueSource(strings = {"01000", "57014", "57P01"})
    void requireNoDoubt_warningOutsideOfFunctions_isDoubt(String state) {
        assertThatThrownBy(() -> SqlErrors.requireNoDoubt(warning("00000", "", warning(state, "", null))))
                .isInstanceOfSatisfying(
                        AppendStatement.WarnedException.class,
                        e -> assertThat(SqlErrors.classify(e)).isEqualTo(ErrorKind.IN_DOUBT));
    }

    @Test
    void requireNoDoubt_warningWithoutDetails_isDoubt() {
        assertThatThrownBy(() -> SqlErrors.requireNoDoubt(new SQLWarning("of a wrapping driver", "01000")))
                .isInstanceOf(AppendStatement.WarnedException.class);
    }

    @Test
    void requireNoDoubt_messagesAndWarningsOfFunctions_areNone() {
        assertThatCode(() -> {
                    SqlErrors.requireNoDoubt(null);
                    SqlErrors.requireNoDoubt(warning("00000", "", warning("02000", "", null)));
                    SqlErrors.requireNoDoubt(warning("01000", "Wfonction PL/pgSQL f()\0", null));
                })
                .doesNotThrowAnyException();
    }

    @Test
    void message_isFirstLineFollowedByThoseOfCauses() {
        SQLException cause = serverError("28P01", "Dsecret row\0");

        assertThat(SqlErrors.message(new NotSentException(new SQLException("pool exhausted\nat once", cause))))
                .isEqualTo("pool exhausted: FEHLER: text");
    }

    /** A handler may throw such an error; its thread would never return. */
    @Test
    @Timeout(10)
    void causes_referToEachOther_areExaminedOnce() {
        SQLException error = new SQLException("first");
        error.initCause(new IllegalStateException("second", error));

        assertThat(SqlErrors.isOtherIncarnation(error)).isFalse();
        assertThat(SqlErrors.message(error)).isEqualTo("first: second");
    }

    private static PSQLException serverError(String state, String fields) {
        return new PSQLException(new ServerErrorMessage("SFEHLER\0C" + state + "\0Mtext\0" + fields));
    }

    private static SQLWarning warning(String state, String fields, SQLWarning next) {
        SQLWarning warning = new PSQLWarning(new ServerErrorMessage("SWARNUNG\0C" + state + "\0Mtext\0" + fields));
        warning.setNextWarning(next);
        return warning;
    }
}
