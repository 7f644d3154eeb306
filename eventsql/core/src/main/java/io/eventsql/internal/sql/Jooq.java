package io.eventsql.internal.sql;

import java.sql.Connection;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.conf.Settings;
import org.jooq.conf.StatementType;
import org.jooq.impl.DSL;

/** Creates jOOQ contexts for the statements off the hot path. */
final class Jooq {
    static {
        // jOOQ logs its logo, a tip of the day and its opinion of the server's version ("Version mismatch" for every
        // release but the newest) when it is first used. No setting of a Configuration turns that off, only system
        // properties do. Whatever the application has set stays.
        setIfAbsent("org.jooq.no-logo", "true");
        setIfAbsent("org.jooq.no-tips", "true");
        setIfAbsent("org.jooq.log.org.jooq.impl.DefaultExecuteContext.logVersionSupport", "ERROR");
    }

    private static final Settings SETTINGS = new Settings()
            .withExecuteLogging(false)
            .withStatementType(StatementType.PREPARED_STATEMENT)
            .withDiagnosticsLogging(false);

    private Jooq() {}

    /** Returns a context that runs its statements on one connection. */
    static DSLContext using(Connection connection) {
        return DSL.using(connection, SQLDialect.POSTGRES, SETTINGS);
    }

    private static void setIfAbsent(String property, String value) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, value);
        }
    }
}
