package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role of the pool lacks a privilege. The message names the role, the object and the remedy. A grant takes effect with
 * the next attempt, without a restart.
 */
public final class MissingPrivilegeException extends SQLException {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(MissingPrivilegeException.class);
    private static final String INSUFFICIENT_PRIVILEGE = "42501";

    private MissingPrivilegeException(String role, SQLException cause) {
        super(
                "Role " + role + " lacks a privilege: " + SqlErrors.message(cause)
                        + ". Grant it the role of its task: eventsql_publisher, eventsql_relay, eventsql_consumer,"
                        + " eventsql_reader or eventsql_owner (io/eventsql/db/roles.sql creates them); no restart is needed",
                INSUFFICIENT_PRIVILEGE,
                cause);
    }

    /** Returns the error itself, or, if it is a missing privilege, one whose message also names role and remedy. */
    public static SQLException explain(SQLException e, Connection connection) {
        return isMissingPrivilege(e) && !(e instanceof MissingPrivilegeException)
                ? new MissingPrivilegeException(role(connection), e)
                : e;
    }

    /** Returns whether the server denied the statement to the role. */
    public static boolean isMissingPrivilege(SQLException e) {
        return SqlErrors.state(e).equals(INSUFFICIENT_PRIVILEGE);
    }

    /** Returns the role that the connection was opened for; the driver knows it without asking the server. */
    private static String role(Connection connection) {
        try {
            return connection.getMetaData().getUserName();
        } catch (SQLException e) {
            LOG.debug("The role of a connection could not be determined", e);
            return "of the pool";
        }
    }
}
