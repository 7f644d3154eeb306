-- Reads the stream orders of the demo database, and writes a result for each customer into the stream order_totals.
-- {options} is replaced by the options of the database.
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'execution.runtime-mode' = 'batch';
SET 'table.dml-sync' = 'true';
SET 'parallelism.default' = '2';

CREATE TABLE orders (
    status STRING,
    cents BIGINT,
    key STRING METADATA
) WITH ('connector' = 'eventsql', {options}, 'stream' = 'orders', 'format' = 'json', 'scan.bounded.mode' = 'latest');

CREATE TABLE order_totals (
    customer STRING,
    orders BIGINT,
    cents BIGINT
) WITH ('connector' = 'eventsql', {options}, 'stream' = 'order_totals', 'format' = 'json', 'scan.bounded.mode' = 'latest',
    'sink.key-column' = 'customer');

INSERT INTO order_totals
SELECT key, COUNT(*), SUM(cents) FROM orders WHERE status = 'paid' GROUP BY key;

SELECT customer, orders, cents FROM order_totals ORDER BY cents DESC LIMIT 5;
SELECT COUNT(*) AS customers, SUM(orders) AS orders FROM order_totals;
