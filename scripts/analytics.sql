-- Times and plans of the queries in docs/analytics.md, over the events of scripts/analytics_events.sql.
--
--   psql -X -d DATABASE -f scripts/analytics.sql
--
-- Queries of an hour run twice, and the second time counts. The other shard is the same database, read through postgres_fdw.
\set ON_ERROR_STOP on
\pset pager off
\pset tuples_only on
\pset format unaligned
SET client_min_messages = warning;
CREATE SCHEMA IF NOT EXISTS reporting;
DROP STATISTICS IF EXISTS reporting.by_hour;
CREATE OR REPLACE VIEW reporting.orders AS
SELECT partition, event_offset, key, published_at,
       (convert_from(value, 'UTF8')::json ->> 'cents')::bigint AS cents
FROM eventsql.events_analytics;
CREATE OR REPLACE FUNCTION reporting.orders_between(p_from timestamptz, p_to timestamptz)
RETURNS TABLE (partition int, event_offset bigint, key text, published_at timestamptz, cents bigint)
LANGUAGE sql STABLE AS $$
    SELECT e.partition, e.event_offset, e.key, e.published_at, (convert_from(e.value, 'UTF8')::json ->> 'cents')::bigint
    FROM eventsql.events_between_v1('analytics', p_from, p_to) e
$$;
CREATE OR REPLACE VIEW reporting.orders_by_minute AS
SELECT date_bin('1 minute', published_at, 'epoch') AS window_start, key, count(*) AS events, count(cents) AS cents_count,
       sum(cents) AS cents_sum, min(cents) AS cents_min, max(cents) AS cents_max
FROM reporting.orders_between('2026-01-01 22:00:00Z', '2026-01-01 23:00:00Z')
GROUP BY 1, 2;
CREATE OR REPLACE VIEW reporting.cents_histogram AS
SELECT key, floor(20 * log(greatest(cents, 1)))::int AS bucket, count(*) AS events
FROM reporting.orders GROUP BY 1, 2;

CREATE EXTENSION IF NOT EXISTS postgres_fdw;
DROP SERVER IF EXISTS events_shard1 CASCADE;
SELECT current_setting('port') AS port, split_part(current_setting('unix_socket_directories'), ',', 1) AS folder \gset
CREATE SERVER events_shard1 FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'folder', port :'port', dbname :'DBNAME', fetch_size '10000');
CREATE USER MAPPING FOR CURRENT_USER SERVER events_shard1 OPTIONS (user :'USER');
DROP SCHEMA IF EXISTS shard1 CASCADE;
CREATE SCHEMA shard1;
IMPORT FOREIGN SCHEMA reporting LIMIT TO (orders_by_minute, cents_histogram) FROM SERVER events_shard1 INTO shard1;

PREPARE all_count AS SELECT count(*) FROM eventsql.events_analytics;
PREPARE all_by_hour AS
SELECT date_bin('1 hour', published_at, 'epoch') AS window_start, count(*), sum(cents), min(cents), max(cents), avg(cents)
FROM reporting.orders GROUP BY 1 ORDER BY 1;
PREPARE all_by_key AS
SELECT key, count(*), sum(cents), min(cents), max(cents), avg(cents) FROM reporting.orders GROUP BY 1;
PREPARE hour_by_minute AS
SELECT date_bin('1 minute', published_at, 'epoch') AS window_start, count(*), sum(cents), min(cents), max(cents), avg(cents)
FROM reporting.orders_between('2026-01-01 22:00:00Z', '2026-01-01 23:00:00Z') GROUP BY 1 ORDER BY 1;
PREPARE hour_by_minute_condition AS
SELECT date_bin('1 minute', published_at, 'epoch') AS window_start, count(*), sum(cents), min(cents), max(cents), avg(cents)
FROM reporting.orders
WHERE published_at >= '2026-01-01 22:00:00Z' AND published_at < '2026-01-01 23:00:00Z' GROUP BY 1 ORDER BY 1;
PREPARE hour_quantiles AS
SELECT date_bin('1 minute', published_at, 'epoch') AS window_start,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY cents)
FROM reporting.orders_between('2026-01-01 22:00:00Z', '2026-01-01 23:00:00Z') GROUP BY 1 ORDER BY 1;
PREPARE all_quantiles_by_key AS
SELECT key, percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY cents) FROM reporting.orders GROUP BY 1;
PREPARE all_quantiles_by_histogram AS
SELECT key, min(bucket) FILTER (WHERE below >= 0.5 * total), min(bucket) FILTER (WHERE below >= 0.95 * total),
       min(bucket) FILTER (WHERE below >= 0.99 * total)
FROM (SELECT key, bucket, sum(events) OVER (PARTITION BY key ORDER BY bucket) AS below, sum(events) OVER (PARTITION BY key) AS total
      FROM reporting.cents_histogram) AS h
GROUP BY 1;
PREPARE hour_sliding AS
SELECT key, published_at, sum(cents) OVER w, count(*) OVER w
FROM reporting.orders_between('2026-01-01 22:00:00Z', '2026-01-01 23:00:00Z')
WINDOW w AS (PARTITION BY key ORDER BY published_at RANGE BETWEEN interval '1 minute' PRECEDING AND CURRENT ROW);
PREPARE two_shards_hour AS
SELECT window_start, key, sum(events), sum(cents_sum), min(cents_min), max(cents_max), sum(cents_sum) / sum(cents_count)
FROM (SELECT * FROM reporting.orders_by_minute UNION ALL SELECT * FROM shard1.orders_by_minute) AS shards
GROUP BY 1, 2;
PREPARE two_shards_quantiles AS
SELECT key, min(bucket) FILTER (WHERE below >= 0.99 * total)
FROM (SELECT key, bucket, sum(sum(events)) OVER (PARTITION BY key ORDER BY bucket) AS below,
             sum(sum(events)) OVER (PARTITION BY key) AS total
      FROM (SELECT * FROM reporting.cents_histogram UNION ALL SELECT * FROM shard1.cents_histogram) AS shards
      GROUP BY key, bucket) AS h
GROUP BY 1;

-- Prints the time of the last execution in ms, and the plan without the scans of single segments.
CREATE OR REPLACE FUNCTION pg_temp.measure(query text, times int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz;
    line  text;
    lines text;
BEGIN
    FOR i IN 1..times LOOP
        begun := clock_timestamp();
        lines := '';
        FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) EXECUTE %I', query) LOOP
            IF line !~ '__p[0-9]+_s[0-9]+|Filter|Worker [0-9]' THEN
                lines := lines || E'\n    ' || line;
            END IF;
        END LOOP;
    END LOOP;
    RETURN format('%s: %s ms%s', query, round(extract(epoch FROM clock_timestamp() - begun) * 1000), lines);
END $$;
\echo == one shard
SELECT pg_temp.measure('all_count', 2);
SELECT pg_temp.measure('all_by_hour', 1);
CREATE STATISTICS reporting.by_hour ON (date_bin('1 hour', published_at, 'epoch')), partition FROM eventsql.events_analytics;
ANALYZE eventsql.events_analytics;
\echo with statistics of the window
SELECT pg_temp.measure('all_by_hour', 1);
SELECT pg_temp.measure('all_by_key', 1);
SELECT pg_temp.measure('hour_by_minute', 2);
SELECT pg_temp.measure('hour_by_minute_condition', 2);
SELECT pg_temp.measure('hour_sliding', 2);
SELECT pg_temp.measure('hour_quantiles', 2);
SELECT pg_temp.measure('all_quantiles_by_key', 1);
SELECT pg_temp.measure('all_quantiles_by_histogram', 1);
\echo == two shards
SELECT pg_temp.measure('two_shards_hour', 2);
SELECT pg_temp.measure('two_shards_quantiles', 1);
