package io.eventsql.eventsdb;

import java.sql.SQLException;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A running PostgreSQL server with the settings of {@code postgresql.conf} and an empty database {@code eventsql}.
 * {@link #close()} stops the server and removes its data. Thread-safe.
 */
public interface EventsDb extends AutoCloseable {

    /**
     * The system property that selects the kind of server: {@code embedded} (the default) or {@code testcontainers}.
     */
    String DATABASE_PROPERTY = "eventsql.test.database";

    /** The system property for the image of {@code testcontainers}; {@code postgres:18} by default. */
    String IMAGE_PROPERTY = "eventsql.test.image";

    /**
     * Starts a server of the kind selected by {@value #DATABASE_PROPERTY}. Docker is used only on request, because
     * detecting it takes minutes if no registry is reachable.
     *
     * @throws IllegalArgumentException if the property has another value
     * @throws IllegalStateException if the server does not start, or is not durable
     */
    static EventsDb start() {
        String kind = System.getProperty(DATABASE_PROPERTY, "embedded");
        return switch (kind) {
            case "embedded" -> EmbeddedEventsDb.builder().start();
            case "testcontainers" ->
                ContainerEventsDb.start(System.getProperty(IMAGE_PROPERTY, ContainerEventsDb.DEFAULT_IMAGE));
            default ->
                throw new IllegalArgumentException(
                        DATABASE_PROPERTY + " must be embedded or testcontainers, but is " + kind);
        };
    }

    /** Returns the JDBC URL of the database {@code eventsql}, without user and password. */
    String jdbcUrl();

    /** Returns the JDBC URL of another database on the same server, created by {@link #createDatabase}. */
    default String jdbcUrl(String database) {
        return jdbcUrl().replaceFirst("/" + InitSql.DATABASE + "(?=\\?|$)", "/" + database);
    }

    /** Returns the role that owns the database; not a superuser. */
    String username();

    String password();

    /** Returns unpooled connections to {@link #jdbcUrl()} as {@link #username()}. */
    DataSource dataSource();

    /**
     * Returns unpooled superuser connections to the same database, to terminate backends, run checkpoints or read
     * statistics.
     */
    DataSource adminDataSource();

    /**
     * Creates another empty database on the same server, owned by {@link #username()}.
     *
     * @param name an identifier of lower-case letters, digits and underscores
     * @return unpooled connections to it as {@link #username()}
     */
    default DataSource createDatabase(String name) {
        return createDatabase(name, "template1");
    }

    /**
     * Creates a copy of another database of the server, which must not have connections during the copy.
     *
     * @param template the database to copy
     */
    default DataSource createDatabase(String name, String template) {
        for (String identifier : new String[] {name, template}) {
            if (!identifier.matches("[a-z_][a-z0-9_]{0,62}")) {
                throw new IllegalArgumentException("not a database name: " + identifier);
            }
        }
        try (var connection = adminDataSource().getConnection();
                var statement = connection.createStatement()) {
            // By default all pages would go through the buffers and the WAL.
            statement.execute("CREATE DATABASE " + name + " OWNER " + username() + " TEMPLATE " + template
                    + " STRATEGY FILE_COPY");
            statement.execute("ALTER DATABASE " + name + " SET timezone TO 'UTC'");
        } catch (SQLException e) {
            throw new IllegalStateException("cannot create the database " + name, e);
        }
        var dataSource = new PGSimpleDataSource();
        dataSource.setUrl(jdbcUrl(name));
        dataSource.setUser(username());
        dataSource.setPassword(password());
        return dataSource;
    }

    /**
     * Returns the value of a setting as {@code SHOW} prints it for {@link #username()}, such as {@code on} or {@code
     * 512MB}.
     */
    default String show(String setting) {
        try (var connection = dataSource().getConnection();
                var statement = connection.prepareStatement("SELECT current_setting(?)")) {
            statement.setString(1, setting);
            try (var row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        } catch (SQLException e) {
            throw new IllegalStateException("cannot show " + setting, e);
        }
    }

    @Override
    void close();
}
