package io.eventsql.contract;

import io.eventsql.Settings;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.io.IOException;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Databases with the library's empty tables and the roles of {@code roles.sql}, which belong to no cluster yet: copies of one, which
 * is faster than to apply the file to each. Thread-safe.
 */
final class RolesDatabases {
    private static final Map<Boolean, String> TEMPLATES = new HashMap<>();
    private static final AtomicInteger COPIES = new AtomicInteger();

    private RolesDatabases() {}

    /**
     * Creates a database.
     *
     * @param isPublic whether PUBLIC may execute functions unless that is revoked, as is the default of PostgreSQL
     */
    static synchronized DataSource create(boolean isPublic) throws SQLException, IOException {
        String template = TEMPLATES.get(isPublic);
        if (template == null) {
            template = createTemplate(isPublic);
            TEMPLATES.put(isPublic, template);
        }
        return TestCluster.server().createDatabase("roles_" + COPIES.incrementAndGet(), template);
    }

    private static String createTemplate(boolean isPublic) throws SQLException, IOException {
        DataSource database = isPublic ? TestCluster.newDatabaseWithTables() : Roles.newDatabaseWithoutPublic();
        if (!isPublic) {
            Settings settings = Settings.builder().build();
            new Migrator(new SqlSchema(settings.schema()), true)
                    .migrate(new Database(database, settings.networkTimeout()));
        }
        Roles.apply(database, "eventsql");
        return ((PGSimpleDataSource) database).getDatabaseName();
    }
}
