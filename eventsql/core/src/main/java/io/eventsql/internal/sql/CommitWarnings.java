package io.eventsql.internal.sql;

/**
 * Has the server send the warnings by which a commit is judged ({@link SqlErrors#requireNoDoubt}), and those of maintenance.
 * {@code client_min_messages = error} withholds them, and a role, a database, or another client of a session behind a pooler
 * may have set it. Both forms last as long as the transaction.
 */
final class CommitWarnings {
    /**
     * The last column of a statement of one row in autocommit mode: it is evaluated after the others, before the commit. What
     * the statement itself reports is sent as the session has it.
     */
    static final String COLUMN = ", set_config('client_min_messages', 'warning', true)";

    /** One of the first statements of a transaction. */
    static final String SETTING = "SET LOCAL client_min_messages = warning";

    private CommitWarnings() {}
}
