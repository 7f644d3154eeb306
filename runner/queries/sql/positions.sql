-- The stream of positions as a table of Flink: where each sensor was, by its own clock. Edit the options of your databases, then
-- run a query:
--
--   bin/sql-client.sh -i positions.sql -f two-step-pattern.sql
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE positions (
    sensor STRING METADATA FROM 'key',
    at_ms BIGINT,
    x INT,
    y INT,
    speed INT,
    published_at TIMESTAMP_LTZ(3) METADATA,
    `at` AS TO_TIMESTAMP_LTZ(at_ms, 3),
    WATERMARK FOR `at` AS `at`
) WITH (
    'connector' = 'eventsql',
    'url' = 'jdbc:postgresql://localhost:5432/events',
    'username' = 'events',
    'password' = '...',
    'stream' = 'positions',
    'format' = 'json',
    'scan.watermark.idle-timeout' = '1 s'
);

-- The same events undecoded.
CREATE TABLE position_values (
    sensor STRING METADATA FROM 'key',
    `value` BYTES,
    published_at TIMESTAMP_LTZ(3) METADATA
) WITH (
    'connector' = 'eventsql',
    'url' = 'jdbc:postgresql://localhost:5432/events',
    'username' = 'events',
    'password' = '...',
    'stream' = 'positions',
    'format' = 'raw'
);

CREATE VIEW fast_positions AS SELECT * FROM positions WHERE speed >= 80;

CREATE VIEW ball_positions AS SELECT * FROM positions WHERE sensor = 'ball';
