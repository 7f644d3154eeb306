-- The login role and the database of EventSQL, created once by the superuser of a new server.
-- The library creates its own tables.
--
-- The password is a variable: psql replaces :'eventsql_password' (psql -v eventsql_password=...),
-- and the embedded launcher inserts a quoted literal. The launcher sends one statement at a time and splits
-- the file at semicolons at line ends. Do not use psql commands or function bodies here.

CREATE ROLE eventsql LOGIN PASSWORD :'eventsql_password';

CREATE DATABASE eventsql OWNER eventsql;

-- Independent of the time zones of server and client.
ALTER DATABASE eventsql SET timezone TO 'UTC';
