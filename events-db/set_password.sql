-- Gives the role the password the container was started with: a database keeps its data, a password may change.
\getenv eventsql_password EVENTSQL_PASSWORD
ALTER ROLE eventsql PASSWORD :'eventsql_password';
