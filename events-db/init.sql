-- The login role and the database of EventSQL, made once in an empty server by its superuser.
-- The library creates its own tables, so none are here.
--
-- The password comes from outside: psql fills in :'eventsql_password' (psql -v eventsql_password=...),
-- the embedded launcher puts a quoted literal there. The launcher sends one statement at a time and splits
-- the file where a line ends with a semicolon: no psql commands and no function bodies here.

CREATE ROLE eventsql LOGIN PASSWORD :'eventsql_password';

CREATE DATABASE eventsql OWNER eventsql;

-- Whatever the server's or the client's machine says.
ALTER DATABASE eventsql SET timezone TO 'UTC';
