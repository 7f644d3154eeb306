CREATE SCHEMA eventsql;
COMMENT ON SCHEMA eventsql IS 'prepared';
