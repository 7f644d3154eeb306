-- Measures how PostgreSQL finds the events of the last hour in a stream with many segments. The figures of
-- docs/decisions/0016-events-of-a-period-are-found-by-offsets.md come from it.
--
-- Usage, in a new database with the schema of the library, on a server with max_locks_per_transaction = 1024:
--     psql -X -d DATABASE -v segments=2500 -f scripts/segment_pruning.sql
--
-- Four partitions have so many segments each. An event of each partition is published every 10 s, 20 events are a segment.

\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
SET client_min_messages = warning;

CREATE PROCEDURE public.build_segments(segments int) LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR p IN 0 .. 3 LOOP
        FOR s IN 0 .. segments - 1 LOOP
            name := 'events_orders__p' || p || '_s' || s;
            IF to_regclass(format('eventsql.%I', name)) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE eventsql.%I (LIKE eventsql.events_orders__p%s INCLUDING DEFAULTS INCLUDING CONSTRAINTS'
                    ' INCLUDING STORAGE, PRIMARY KEY (event_offset))', name, p);
                EXECUTE format(
                    'ALTER TABLE eventsql.events_orders__p%s ATTACH PARTITION eventsql.%I FOR VALUES FROM (%s) TO (%s)',
                    p, name, s * 20, (s + 1) * 20);
                INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name)
                VALUES (1, p, s * 20, (s + 1) * 20, s, name);
            END IF;
            EXECUTE format(
                'INSERT INTO eventsql.%I (partition, event_offset, key, value, published_at)'
                ' SELECT %s, o, ''k'', repeat(''x'', 200)::bytea, timestamptz ''2026-01-01 00:00Z'' + o * interval ''10 s'''
                ' FROM generate_series(%s, %s) AS o', name, p, s * 20, s * 20 + 19);
            UPDATE eventsql.segment g
            SET state = 'closed', last_published_at = timestamptz '2026-01-01 00:00Z' + (s * 20 + 19) * interval '10 s'
            WHERE g.table_name = name;
            IF s % 50 = 0 THEN
                COMMIT;
            END IF;
        END LOOP;
        INSERT INTO eventsql.producer_batch
        VALUES (1, p, segments * 20, segments * 20 - 1, gen_random_uuid(), 1,
                timestamptz '2026-01-01 00:00Z' + (segments * 20 - 1) * interval '10 s');
        COMMIT;
    END LOOP;
END $$;

CREATE FUNCTION public.check_times() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT * FROM eventsql.segment WHERE state = 'closed' LOOP
        EXECUTE format(
            'ALTER TABLE eventsql.%I ADD CHECK (published_at >= %L AND published_at <= %L)', g.table_name,
            g.last_published_at - 19 * interval '10 s', g.last_published_at);
    END LOOP;
END $$;

SELECT eventsql.create_stream_v1('orders', 4, 20, false, 1) \g /dev/null
SELECT eventsql.create_partitions_v1(1, 20) \g /dev/null
CALL public.build_segments(:segments);
ANALYZE eventsql.segment, eventsql.producer_batch;
SELECT timestamptz '2026-01-01 00:00Z' + (:segments * 20 - 361) * interval '10 s' AS "from" \gset
SELECT eventsql.offset_at_v1('orders', 0, :'from') AS first_offset \gset
SELECT count(*) AS segments FROM eventsql.segment WHERE state = 'closed';

-- Each statement runs three times in a session of its own; the first run fills that session's caches.
CREATE FUNCTION public.measure(label text, query text) RETURNS TABLE (
    statement text, run int, planning_ms numeric, execution_ms numeric, locks bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    FOR i IN 1 .. 3 LOOP
        EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, FORMAT json) ' || query INTO plan;
        SELECT count(*) INTO locks FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation';
        statement := label;
        run := i;
        planning_ms := round((plan -> 0 ->> 'Planning Time')::numeric, 1);
        execution_ms := round((plan -> 0 ->> 'Execution Time')::numeric, 1);
        RETURN NEXT;
    END LOOP;
END $$;

\c
\pset pager off
SELECT * FROM public.measure('published_at >= …',
    format('SELECT count(*) FROM eventsql.events_orders WHERE published_at >= %L', :'from'));
\c
SELECT * FROM public.measure('one partition, event_offset >= (SELECT offset_at_v1(…))', format(
    'SELECT count(*) FROM eventsql.events_orders WHERE partition = 0'
    ' AND event_offset >= (SELECT eventsql.offset_at_v1(''orders'', 0, %L))', :'from'));
\c
SELECT * FROM public.measure('each partition, event_offset >= literal', format(
    'SELECT count(*) FROM eventsql.events_orders WHERE (partition = 0 AND event_offset >= %1$s)'
    ' OR (partition = 1 AND event_offset >= %1$s) OR (partition = 2 AND event_offset >= %1$s)'
    ' OR (partition = 3 AND event_offset >= %1$s)', :first_offset));
\c
SELECT * FROM public.measure('events_between_v1(…)',
    format('SELECT count(*) FROM eventsql.events_between_v1(''orders'', %L, ''infinity'')', :'from'));
\c
SELECT public.check_times() \g /dev/null
\c
SELECT * FROM public.measure('published_at >= …, CHECK of each segment',
    format('SELECT count(*) FROM eventsql.events_orders WHERE published_at >= %L', :'from'));
\c
SELECT * FROM public.measure('published_at >= now() - …, CHECK of each segment',
    format('SELECT count(*) FROM eventsql.events_orders WHERE published_at >= now() - (now() - %L)', :'from'));
\c
CREATE INDEX ON eventsql.events_orders USING brin (published_at);
\c
ALTER DATABASE :DBNAME SET constraint_exclusion = off;
\c
SELECT * FROM public.measure('published_at >= …, BRIN of each segment',
    format('SELECT count(*) FROM eventsql.events_orders WHERE published_at >= %L', :'from'));
