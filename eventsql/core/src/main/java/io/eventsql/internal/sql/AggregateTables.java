package io.eventsql.internal.sql;

import io.eventsql.ContinuousAggregateSpec;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The view and tables of a continuous aggregate in the application's schema, and their generations: the one that the view shows,
 * and while it is being rebuilt the next one. Off the hot path. Thread-safe.
 */
public final class AggregateTables {
    private static final String CREATE_STATE = """
            CREATE TABLE {state} (
                is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
                declaration text NOT NULL,
                generation int NOT NULL,
                rebuilding int
            )""";

    // Index: the primary key, on which a concurrent insert waits.
    private static final String INSERT_STATE =
            "INSERT INTO {state} (declaration, generation) VALUES (?, ?) ON CONFLICT (is_only_row) DO NOTHING";

    // Low fillfactor: one row of a partition is updated with each page.
    private static final String CREATE_COVERAGE = """
            CREATE TABLE {coverage} (
                generation int,
                partition int,
                first_offset bigint NOT NULL,
                first_published_at timestamptz NOT NULL,
                next_offset bigint NOT NULL,
                last_published_at timestamptz NOT NULL,
                PRIMARY KEY (generation, partition)
            ) WITH (fillfactor = 50)""";

    // The key's order is that of bytes, whatever the database's collation.
    private static final String CREATE_PARTIALS = """
            CREATE TABLE {partials} (
                generation int NOT NULL,
                partition int NOT NULL,
                window_start timestamptz NOT NULL,
                key text COLLATE "C",
                events bigint NOT NULL,
                {columns}
                UNIQUE NULLS NOT DISTINCT (generation, window_start, key, partition)
            ) WITH (fillfactor = 80)""";

    // A key may be NULL, so no index identifies the rows for a publication. Locks the partials exclusively.
    private static final String IDENTIFY_PARTIALS = "ALTER TABLE {partials} REPLICA IDENTITY FULL";

    private static final String PARTIAL_COLUMNS = """
            %1$s_count bigint NOT NULL,
                %1$s_sum numeric NOT NULL,
                %1$s_min numeric,
                %1$s_max numeric,
            """;

    // Index: the unique one of the partials, by generation and window_start. Takes no row lock.
    private static final String CREATE_VIEW = """
            CREATE VIEW {view} AS
            SELECT p.window_start,
                   p.window_start + interval '{window} milliseconds' AS window_end,
                   p.key,
                   sum(p.events)::bigint AS events{columns}
            FROM {partials} p
            WHERE p.generation = (SELECT s.generation FROM {state} s)
            GROUP BY p.window_start, p.key""";

    private static final String VIEW_COLUMNS = """
            ,
                   sum(p.%1$s_count)::bigint AS %1$s_count,
                   sum(p.%1$s_sum) AS %1$s_sum,
                   min(p.%1$s_min) AS %1$s_min,
                   max(p.%1$s_max) AS %1$s_max,
                   sum(p.%1$s_sum) / nullif(sum(p.%1$s_count), 0) AS %1$s_avg""";

    private static final String GRANT = """
            GRANT USAGE ON SCHEMA {schema} TO {role};
            GRANT SELECT ON {view} TO {role};
            GRANT SELECT, INSERT, UPDATE, DELETE ON {partials}, {coverage}, {state} TO {role};
            """;

    // Reads no table. An advisory lock, so that members that start at the same time create the tables once.
    private static final String LOCK_CREATION = "SELECT pg_advisory_xact_lock(hashtextextended(?, 4711))";

    // Reads the catalog. Takes no row lock.
    private static final String EXISTS = "SELECT to_regclass(?) IS NOT NULL";

    // Reads the catalog. Takes no row lock.
    private static final String MAY_WRITE = """
            SELECT bool_and(has_table_privilege(t.name, p.name))
            FROM unnest(ARRAY[?, ?, ?]) AS t (name),
                 unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (name)""";

    // Reads the catalog. Takes no row lock.
    private static final String MAY_IDENTIFY_PARTIALS = """
            SELECT c.relreplident = 'd' AND pg_has_role(c.relowner, 'USAGE')
            FROM pg_class c
            WHERE c.oid = to_regclass(?)""";

    // Reads no table. Readers queue behind a lock that is waited for.
    private static final String WAIT_BRIEFLY = "SET LOCAL lock_timeout = '100ms'";

    // Reads the one row. Takes no row lock.
    private static final String READ_STATE = "SELECT declaration, generation, rebuilding FROM {state}";

    // Locks the one row.
    private static final String BEGIN_REBUILD =
            "UPDATE {state} SET rebuilding = ? WHERE generation < ? AND rebuilding IS NULL";

    // Index: the primary key of the coverage. Locks the rows of the generation, in the order of the partitions: no page
    // of it
    // can be added.
    private static final String LOCK_COVERAGE =
            "SELECT partition FROM {coverage} WHERE generation = ? ORDER BY partition FOR UPDATE";

    // Locks the one row.
    private static final String SERVE =
            "UPDATE {state} SET generation = rebuilding, rebuilding = NULL WHERE rebuilding = ?";

    // Index: the primary key of the coverage. Takes no row lock.
    private static final String OLD_GENERATIONS =
            "SELECT DISTINCT generation FROM {coverage} WHERE generation < ? ORDER BY generation";

    // Index: the unique one of the partials, by generation. Locks the deleted rows, which no page adds to any more.
    private static final String DELETE_PARTIALS = """
            DELETE FROM {partials}
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM {partials} WHERE generation = ? LIMIT ?))""";

    // Index: the primary key of the coverage. Locks the deleted rows.
    private static final String DELETE_COVERAGE = "DELETE FROM {coverage} WHERE generation = ?";

    // Locks the tables exclusively.
    private static final String DROP = """
            DROP VIEW IF EXISTS {view};
            DROP TABLE IF EXISTS {partials}, {coverage}, {state}""";

    private final ContinuousAggregateSpec spec;
    private final AggregateNames names;

    public AggregateTables(ContinuousAggregateSpec spec) {
        this.spec = spec;
        this.names = AggregateNames.of(spec);
    }

    /**
     * The state on one shard.
     *
     * @param declaration what the tables were created for
     * @param generation the one that the view shows
     * @param rebuilding the one that will replace it; {@code null} if it is not being rebuilt
     */
    public record State(
            String declaration, int generation, @Nullable Integer rebuilding) {
        /** Returns the generations that have a consumer. */
        public Stream<Integer> generations() {
            return Stream.of(generation, newest());
        }

        /** Returns the newest generation. */
        public int newest() {
            return rebuilding == null ? generation : rebuilding;
        }
    }

    /** Returns the statements that create view and tables, and grant a role what a member needs. */
    public String script(String role) {
        String schema = AggregateNames.quoted(spec.schema());
        return statements().stream().map(s -> s + ";\n").collect(Collectors.joining())
                + names.sql(GRANT).replace("{schema}", schema).replace("{role}", AggregateNames.quoted(role));
    }

    private List<String> statements() {
        String partialColumns = spec.measures().keySet().stream()
                .map(PARTIAL_COLUMNS::formatted)
                .collect(Collectors.joining("    "))
                .strip();
        String viewColumns =
                spec.measures().keySet().stream().map(VIEW_COLUMNS::formatted).collect(Collectors.joining());
        return List.of(
                names.sql(CREATE_STATE),
                names.sql(CREATE_COVERAGE),
                names.sql(CREATE_PARTIALS.replace("{columns}", partialColumns)),
                names.sql(IDENTIFY_PARTIALS),
                names.sql(CREATE_VIEW
                        .replace("{columns}", viewColumns)
                        .replace("{window}", Long.toString(spec.window().toMillis()))));
    }

    /** Creates view and tables unless they exist, in the caller's transaction. */
    public void create(Connection connection) throws SQLException {
        try (PreparedStatement lock = connection.prepareStatement(LOCK_CREATION)) {
            lock.setString(1, names.state());
            lock.execute();
        }
        if (exists(connection)) {
            return;
        }
        try (Statement statement = connection.createStatement()) {
            for (String sql : statements()) {
                statement.execute(sql);
            }
        }
    }

    /**
     * Lets a publication contain the rows of partials that an earlier release has created, in the caller's transaction, if the
     * connection's role owns them.
     *
     * @throws SQLException a lock conflict ({@link SqlErrors#isLockConflict}) if a transaction uses them; repeat the call later
     */
    public void identifyPartials(Connection connection) throws SQLException {
        if (queryBoolean(connection, MAY_IDENTIFY_PARTIALS, names.partials())) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(WAIT_BRIEFLY);
                statement.execute(names.sql(IDENTIFY_PARTIALS));
            }
        }
    }

    /** Drops view and tables, in the caller's transaction. */
    public void drop(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(names.sql(DROP));
        }
    }

    private boolean exists(Connection connection) throws SQLException {
        return queryBoolean(connection, EXISTS, names.state());
    }

    /** Returns whether the connection's role has all rights that a member needs. */
    public boolean mayWrite(Connection connection) throws SQLException {
        return queryBoolean(connection, MAY_WRITE, names.state(), names.coverage(), names.partials());
    }

    private static boolean queryBoolean(Connection connection, String sql, String... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setString(i + 1, parameters[i]);
            }
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean(1);
            }
        }
    }

    /** Stores the state of new tables, unless another member has. */
    public void insertState(Connection connection, int generation) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(names.sql(INSERT_STATE))) {
            statement.setString(1, spec.declaration());
            statement.setInt(2, generation);
            statement.executeUpdate();
        }
    }

    /** Returns the state; empty if the tables do not exist, or no member has used them yet. */
    public Optional<State> state(Connection connection) throws SQLException {
        if (!exists(connection)) {
            return Optional.empty();
        }
        try (PreparedStatement statement = connection.prepareStatement(names.sql(READ_STATE));
                ResultSet row = statement.executeQuery()) {
            return row.next()
                    ? Optional.of(new State(row.getString(1), row.getInt(2), row.getObject(3, Integer.class)))
                    : Optional.empty();
        }
    }

    /** Begins to rebuild a generation, unless a rebuild has begun or the view shows it. */
    public void beginRebuild(Connection connection, int generation) throws SQLException {
        update(connection, BEGIN_REBUILD, generation, generation);
    }

    /** Keeps members from adding pages to a generation until the caller's transaction ends. */
    public void lockCoverage(Connection connection, int generation) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(names.sql(LOCK_COVERAGE))) {
            statement.setInt(1, generation);
            statement.execute();
        }
    }

    /** Lets the view show the generation that is being rebuilt. */
    public void serve(Connection connection, int generation) throws SQLException {
        update(connection, SERVE, generation);
    }

    /** Returns the generations before a given one that still have rows. */
    public List<Integer> oldGenerations(Connection connection, int generation) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(names.sql(OLD_GENERATIONS))) {
            statement.setInt(1, generation);
            List<Integer> generations = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    generations.add(rows.getInt(1));
                }
            }
            return generations;
        }
    }

    /**
     * Deletes rows of an old generation that has no consumer any more.
     *
     * @return the number of deleted rows, at most {@code max}
     */
    public int deletePartials(Connection connection, int generation, int max) throws SQLException {
        return update(connection, DELETE_PARTIALS, generation, max);
    }

    /** Deletes the coverage of a generation whose rows are deleted. */
    public void deleteCoverage(Connection connection, int generation) throws SQLException {
        update(connection, DELETE_COVERAGE, generation);
    }

    private int update(Connection connection, String sql, int... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(names.sql(sql))) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setInt(i + 1, parameters[i]);
            }
            return statement.executeUpdate();
        }
    }
}
