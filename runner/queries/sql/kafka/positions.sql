-- The same tables over a topic of Kafka.
CREATE TABLE positions (
    sensor STRING,
    at_ms BIGINT,
    x INT,
    y INT,
    speed INT,
    published_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
    `at` AS TO_TIMESTAMP_LTZ(at_ms, 3),
    WATERMARK FOR `at` AS `at`
) WITH (
    'connector' = 'kafka',
    'properties.bootstrap.servers' = 'localhost:9092',
    'topic' = 'positions',
    'key.format' = 'raw',
    'key.fields' = 'sensor',
    'value.format' = 'json',
    'value.fields-include' = 'EXCEPT_KEY',
    'scan.startup.mode' = 'earliest-offset',
    'scan.watermark.idle-timeout' = '1 s'
);

CREATE TABLE position_values (
    sensor STRING,
    `value` BYTES,
    published_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
    'connector' = 'kafka',
    'properties.bootstrap.servers' = 'localhost:9092',
    'topic' = 'positions',
    'key.format' = 'raw',
    'key.fields' = 'sensor',
    'value.format' = 'raw',
    'value.fields-include' = 'EXCEPT_KEY',
    'scan.startup.mode' = 'earliest-offset'
);

CREATE VIEW fast_positions AS SELECT * FROM positions WHERE speed >= 80;

CREATE VIEW ball_positions AS SELECT * FROM positions WHERE sensor = 'ball';
