package io.eventsql.contract;

import io.eventsql.fixture.Roles;
import java.sql.SQLException;
import javax.sql.DataSource;

/** The same where default privileges keep functions from PUBLIC: {@code roles.sql} grants those that run with the caller's rights. */
class PublisherRoleWithoutPublicIT extends PublisherRoleIT {
    @Override
    DataSource createDatabase() throws SQLException {
        return Roles.newDatabaseWithoutPublic();
    }
}
