package io.eventsql.eventsdb;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.testcontainers.postgresql.PostgreSQLContainer;
import org.testcontainers.utility.DockerImageName;

/** A PostgreSQL server in a Docker container. */
final class ContainerEventsDb implements EventsDb {

    static final String DEFAULT_IMAGE = "postgres:18";

    private final PostgreSQLContainer container;
    private final String password;

    private ContainerEventsDb(PostgreSQLContainer container, String password) {
        this.container = container;
        this.password = password;
    }

    static ContainerEventsDb start(String image) {
        List<String> command = new ArrayList<>(List.of("postgres"));
        PostgresConf.load().settings().forEach((name, value) -> command.addAll(List.of("-c", name + "=" + value)));
        var container = new PostgreSQLContainer(DockerImageName.parse(image).asCompatibleSubstituteFor("postgres"))
                .withUsername("postgres")
                .withPassword(Passwords.random())
                .withDatabaseName("postgres")
                .withCommand(command.toArray(String[]::new));
        container.start();
        try {
            var eventsDb = new ContainerEventsDb(container, Passwords.random());
            try (var connection = eventsDb.dataSource("postgres", "postgres", container.getPassword())
                    .getConnection()) {
                InitSql.run(connection, eventsDb.password);
            }
            Durability.require(eventsDb);
            return eventsDb;
        } catch (SQLException | RuntimeException e) {
            container.stop();
            throw new IllegalStateException("cannot set up the container of " + image, e);
        }
    }

    @Override
    public String jdbcUrl() {
        return url(InitSql.DATABASE);
    }

    @Override
    public String username() {
        return InitSql.USERNAME;
    }

    @Override
    public String password() {
        return password;
    }

    @Override
    public DataSource dataSource() {
        return dataSource(InitSql.DATABASE, InitSql.USERNAME, password);
    }

    @Override
    public DataSource adminDataSource() {
        return dataSource(InitSql.DATABASE, "postgres", container.getPassword());
    }

    @Override
    public void close() {
        container.stop();
    }

    private DataSource dataSource(String database, String user, String userPassword) {
        var dataSource = new PGSimpleDataSource();
        dataSource.setUrl(url(database));
        dataSource.setUser(user);
        dataSource.setPassword(userPassword);
        return dataSource;
    }

    private String url(String database) {
        int port = container.getMappedPort(PostgreSQLContainer.POSTGRESQL_PORT);
        return "jdbc:postgresql://" + container.getHost() + ":" + port + "/" + database;
    }
}
