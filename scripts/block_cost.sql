-- Measures what events cost the backend that are stored as rows, and as blocks: its time on a processor for appends (with the
-- commit), fetches and queries, and the WAL of appends without full-page images. Other load on the machine adds noise, but no
-- systematic error. Needs Linux, a superuser, and a database with the library's schema; leaves nothing behind:
--
--   psql -X -q -d DATABASE -f scripts/block_cost.sql
--
-- Events have 226 bytes of key, value and headers. Each figure is the median of five interleaved rounds, in microseconds for
-- each event. The calls are made in a procedure, so the message, its parameters and the statement around a call are not
-- included; nor is packing and unpacking, which the client does.
\set ON_ERROR_STOP on
SET client_min_messages = warning;

SELECT eventsql.create_stream_v3('cost_' || s, 1, 1000000000, false, 1, NULL, NULL, NULL, false, '7 days', false, '1 day', s)
FROM unnest('{rows, blocks}'::text[]) AS s \g /dev/null
SELECT stream_id AS rows_id FROM eventsql.stream WHERE name = 'cost_rows' \gset
SELECT stream_id AS blocks_id FROM eventsql.stream WHERE name = 'cost_blocks' \gset
SELECT eventsql.create_partitions_v1(:rows_id, 1), eventsql.create_partitions_v1(:blocks_id, 1) \g /dev/null
CREATE TEMP TABLE cost (part int, what text, storage text, us float8, wal float8);

CREATE FUNCTION pg_temp.cpu() RETURNS float8 LANGUAGE sql VOLATILE
AS $$ SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1000 $$;

SELECT format($procedure$
    CREATE PROCEDURE pg_temp.append_%1$s(p_events int, p_calls int) LANGUAGE plpgsql AS $$
    DECLARE
        began     float8;
        wal       pg_lsn;
        producer  uuid := gen_random_uuid();
        known     text := eventsql.incarnation_v1();
        one_key   text := 'customer-123';
        one_value bytea := substring(decode(repeat(md5('a'), 13), 'hex') FOR 200);
        header    text := '{"type":"abc"}';
        keys      text[] := array_fill(one_key, ARRAY[p_events]);
        payloads  bytea[] := array_fill(one_value, ARRAY[p_events]);
        headers   text[] := array_fill(header, ARRAY[p_events]);
        each      int := least(p_events, 33);
        groups    int[] := array_fill(1, ARRAY[ceil(p_events::numeric / each)::int]);
        ends      int[] := ARRAY(SELECT least(i * each, p_events) FROM generate_series(1, cardinality(groups)) AS i);
        events    int[] := ARRAY(
            SELECT least(i * each, p_events) - (i - 1) * each FROM generate_series(1, cardinality(groups)) AS i);
        blocks    bytea[] := ARRAY(
            SELECT eventsql.pack_block_v1(keys[1:e], payloads[1:e], headers[1:e]) FROM unnest(events) AS e);
        bases     bigint[];
    BEGIN
        FOR number IN -9 .. p_calls LOOP -- the first ten plan the statements
            IF number = 1 THEN
                wal := pg_current_wal_insert_lsn();
                began := pg_temp.cpu();
            END IF;
            bases := %2$s;
            COMMIT;
        END LOOP;
        INSERT INTO cost
        SELECT 1, 'append, batches of ' || p_events, '%1$s', (pg_temp.cpu() - began) / p_calls / p_events,
               (pg_current_wal_insert_lsn() - wal) / p_calls / p_events / 226;
    END $$
    $procedure$, s.storage, s.call)
FROM (VALUES
    ('rows', format('eventsql.append_v2_%s(producer, number, 1, known, 5000, ''cost_rows'', ARRAY[0], ARRAY[p_events],'
        ' ''{}'', ''{}'', keys, payloads, headers)', :rows_id)),
    ('blocks', format('eventsql.append_blocks_%s(producer, number, 1, known, 5000, ''cost_blocks'', ARRAY[0], ARRAY[p_events],'
        ' groups, ends, events, blocks)', :blocks_id))) AS s (storage, call) \gexec

CREATE PROCEDURE pg_temp.fetch(p_events int, p_calls int) LANGUAGE plpgsql AS $$
DECLARE
    stream record;
    began  float8;
BEGIN
    FOR stream IN
        SELECT s.name, s.stream_id, s.storage,
               CASE s.storage WHEN 'rows' THEN 'fetch_v2' ELSE 'fetch_blocks_v1' END AS function
        FROM eventsql.stream s WHERE s.name LIKE 'cost\_%'
    LOOP
        FOR number IN -2 .. p_calls LOOP
            IF number = 1 THEN
                began := pg_temp.cpu();
            END IF;
            EXECUTE format('SELECT count(*) FROM eventsql.%I($1, $2, $3, ARRAY[0], ARRAY[$4], $5, ARRAY[10000000])',
                stream.function)
            USING eventsql.incarnation_v1(), stream.stream_id, stream.name, 1000 + abs(number)::bigint * p_events, p_events;
        END LOOP;
        INSERT INTO cost
        SELECT 2, 'fetch, pages of ' || p_events, stream.storage, (pg_temp.cpu() - began) / p_calls / p_events;
    END LOOP;
END $$;

CREATE PROCEDURE pg_temp.query(p_query text) LANGUAGE plpgsql AS $$
DECLARE
    storage text;
    began   float8;
    events  bigint;
BEGIN
    FOREACH storage IN ARRAY '{rows, blocks}'::text[] LOOP
        EXECUTE format('SELECT count(*) FROM eventsql.%I', 'events_cost_' || storage) INTO events;
        began := pg_temp.cpu();
        EXECUTE format(p_query, 'events_cost_' || storage);
        INSERT INTO cost SELECT 3, format(p_query, 'events'), storage, (pg_temp.cpu() - began) / events;
    END LOOP;
END $$;

SET synchronous_commit = on;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SELECT format('CALL pg_temp.append_%s(%s, %s)', s, n, CASE n WHEN 1 THEN 500 WHEN 30 THEN 300 WHEN 100 THEN 200 ELSE 40 END)
FROM generate_series(1, 5) AS round, unnest('{1, 30, 100, 1000}'::int[]) AS n, unnest('{rows, blocks}'::text[]) AS s \gexec
SELECT format('CALL pg_temp.fetch(%s, %s)', n, 3000 / n + 10)
FROM generate_series(1, 5) AS round, unnest('{10, 100, 1000, 10000}'::int[]) AS n \gexec
SELECT format('CALL pg_temp.query(%L)', q)
FROM generate_series(1, 5) AS round, unnest(ARRAY[
    'SELECT count(*) FROM eventsql.%I',
    'SELECT sum(octet_length(value)) FROM eventsql.%I',
    'SELECT count(*) FROM eventsql.%I WHERE key = ''x''',
    'SELECT count(*) FROM eventsql.%I WHERE headers ->> ''type'' = ''x''',
    'SELECT count(*) FROM eventsql.%I WHERE published_at > now() + interval ''1 day''',
    'SELECT count(*) FROM eventsql.%I WHERE partition = 0 AND event_offset = 100000']) AS q \gexec

SELECT what,
       round((percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FILTER (WHERE storage = 'rows'))::numeric, 3) AS rows_us,
       round((percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FILTER (WHERE storage = 'blocks'))::numeric, 3) AS blocks_us,
       round((percentile_cont(0.5) WITHIN GROUP (ORDER BY wal) FILTER (WHERE storage = 'rows'))::numeric, 2) AS rows_wal,
       round((percentile_cont(0.5) WITHIN GROUP (ORDER BY wal) FILTER (WHERE storage = 'blocks'))::numeric, 2) AS blocks_wal
FROM cost GROUP BY part, what ORDER BY part, min(us) DESC;

SELECT eventsql.begin_delete_stream_v1('cost_' || s) FROM unnest('{rows, blocks}'::text[]) AS s \g /dev/null
SELECT format('DO $$ BEGIN PERFORM eventsql.drop_deleted_stream_v1(%L, 20); END $$', 'cost_' || s)
FROM generate_series(1, 4), unnest('{rows, blocks}'::text[]) AS s \gexec
