-- Creates the stream analytics with 10,000,000 events of one day, for scripts/analytics.sql.
--
--   psql -X -d DATABASE -v events=10000000 -f scripts/analytics_events.sql
--
-- DATABASE has the schema of EventSQL and nothing of value. Four partitions with segments of 500,000 events; 1,000 keys, each in
-- one partition; values are JSON of about 90 bytes.
\set ON_ERROR_STOP on
\pset pager off
SET client_min_messages = warning;
SELECT eventsql.create_stream_v1('analytics', 4, 500000, true, 1);
SELECT stream_id AS id FROM eventsql.stream WHERE name = 'analytics' \gset
SELECT eventsql.create_partitions_v1(:id, 4);
SELECT eventsql.add_segments_v1(:id, p, least(500000 * n, :events / 4 - 1))
FROM generate_series(0, 3) AS p, generate_series(0, :events / 4 / 500000) AS n;
SELECT setseed(0.5);
\timing on
INSERT INTO eventsql.events_analytics (partition, event_offset, key, value, published_at)
SELECT p, n, 'shop-' || (floor(random() * 250)::int * 4 + p),
       convert_to(
           format('{"cents": %s, "status": "%s", "note": "%s"}', 100 + floor(exp(random() * 9))::int,
               (ARRAY['paid', 'paid', 'paid', 'cancelled'])[1 + floor(random() * 4)::int], repeat('x', 40)), 'UTF8'),
       '2026-01-01 00:00:00Z'::timestamptz + n * (interval '1 day' / (:events / 4)) + p * interval '1 ms'
FROM generate_series(0, :events / 4 - 1) AS n, generate_series(0, 3) AS p;
\timing off
UPDATE eventsql.producer_batch SET next_offset = :events / 4 WHERE stream_id = :id;
VACUUM ANALYZE eventsql.events_analytics;
SELECT pg_size_pretty(sum(pg_total_relation_size(format('eventsql.%I', table_name)::regclass))) AS size
FROM eventsql.segment WHERE stream_id = :id;
