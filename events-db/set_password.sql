-- Sets the password with which the container was started, because the existing data may have an older one.
\getenv eventsql_password EVENTSQL_PASSWORD
ALTER ROLE eventsql PASSWORD :'eventsql_password';
