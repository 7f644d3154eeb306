-- How fast the last event of a key is found in a stream of 1,000,000 events in 20 segments, by the function and in the view of
-- the current state, and three ways to write that view.
--
--   psql -X -d DATABASE -v keys=100000 -f scripts/latest_state.sql
--
-- DATABASE has the schema of EventSQL and nothing of value: the stream latest_state is created in it. One partition; each key
-- has its share of the events in random order, one in ten is a tombstone, and values have 200 bytes.
\set ON_ERROR_STOP on
\pset pager off
SET client_min_messages = warning;
SELECT eventsql.create_stream_v1('latest_state', 1, 50000, false, 1);
SELECT stream_id AS id FROM eventsql.stream WHERE name = 'latest_state' \gset
UPDATE eventsql.stream SET compaction = true WHERE stream_id = :id;
SELECT eventsql.create_partitions_v1(:id, 1);
SELECT eventsql.add_segments_v1(:id, 0, 200000 * n) FROM generate_series(0, 4) AS n;
SELECT eventsql.add_segments_v1(:id, 0, 999999);
SELECT eventsql.add_segments_v1(:id, 0, 999999);
DO $$
DECLARE
    segment text;
BEGIN
    FOR segment IN
        SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)
        WHERE s.name = 'latest_state'
          AND NOT EXISTS (
              SELECT FROM pg_index i
              WHERE i.indrelid = format('eventsql.%I', g.table_name)::regclass AND i.indexprs IS NOT NULL)
    LOOP
        EXECUTE format(
            'CREATE INDEX ON eventsql.%I (hashtextextended(key, 0), event_offset) WHERE key IS NOT NULL', segment);
    END LOOP;
END $$;
SELECT setseed(0.5);
INSERT INTO eventsql.events_latest_state (partition, event_offset, key, value, published_at)
SELECT 0, n, 'key-' || floor(random() * :keys)::int,
       CASE WHEN random() >= 0.1 THEN convert_to(lpad(n::text, 200, 'x'), 'UTF8') END, now()
FROM generate_series(0, 999999) AS n;
UPDATE eventsql.producer_batch SET next_offset = 1000000 WHERE stream_id = :id AND partition = 0;
SELECT eventsql.apply_latest_view_v1('latest_state');
SELECT count(*) AS segments FROM eventsql.segment WHERE stream_id = :id AND first_offset < 1000000;
CREATE VIEW eventsql.latest_state_distinct AS
SELECT * FROM (
    SELECT DISTINCT ON (partition, key) partition, key, event_offset, value, headers, published_at
    FROM eventsql.events_latest_state WHERE key IS NOT NULL ORDER BY partition, key, event_offset DESC) l
WHERE value IS NOT NULL;
CREATE VIEW eventsql.latest_state_anti AS
SELECT e.partition, e.key, e.event_offset, e.value, e.headers, e.published_at
FROM eventsql.events_latest_state e
WHERE e.key IS NOT NULL AND e.value IS NOT NULL AND NOT EXISTS (
    SELECT FROM eventsql.events_latest_state n
    WHERE n.partition = e.partition AND hashtextextended(n.key, 0) = hashtextextended(e.key, 0) AND n.key = e.key
      AND n.event_offset > e.event_offset);
\timing on
\echo == the function: a key with an event in the newest segments, the key of the oldest event, no such key
SELECT key AS oldest FROM eventsql.latest_state_distinct ORDER BY event_offset LIMIT 1 \gset
SELECT key AS newest FROM eventsql.latest_state_distinct ORDER BY event_offset DESC LIMIT 1 \gset
SELECT event_offset FROM eventsql.latest_v1('latest_state', 0, :'newest');
SELECT event_offset FROM eventsql.latest_v1('latest_state', 0, :'newest');
SELECT event_offset FROM eventsql.latest_v1('latest_state', 0, :'oldest');
SELECT event_offset FROM eventsql.latest_v1('latest_state', 0, 'no such key');
\echo == one key in the view, and in the other forms
SELECT event_offset FROM eventsql.events_latest_state__latest WHERE key = :'oldest';
SELECT event_offset FROM eventsql.events_latest_state__latest WHERE key = :'oldest';
SELECT event_offset FROM eventsql.latest_state_distinct WHERE key = :'oldest';
SELECT event_offset FROM eventsql.latest_state_anti WHERE key = :'oldest';
\echo == all keys
SELECT count(*), sum(length(value)) FROM eventsql.events_latest_state__latest;
SELECT count(*), sum(length(value)) FROM eventsql.latest_state_distinct;
SELECT count(*), sum(length(value)) FROM eventsql.latest_state_anti;
\timing off
\echo == plans
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY on) SELECT event_offset FROM eventsql.events_latest_state__latest WHERE key = :'oldest';
EXPLAIN (COSTS off) SELECT * FROM eventsql.events_latest_state__latest;
