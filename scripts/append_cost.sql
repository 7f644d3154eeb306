-- Measures what an append costs the backend: its time on a processor, with the commit, by append_v1 and by the function of the
-- stream. Other load on the machine adds noise, but no systematic error. Needs Linux, a superuser, and a database with the
-- library's schema; leaves nothing behind:
--
--   psql -X -q -d DATABASE -f scripts/append_cost.sql
--
-- Each figure is the median of seven interleaved rounds, in microseconds per call. The calls are made in a procedure, so the
-- message, its parameters and the statement around the call are not included.
\set ON_ERROR_STOP on

SELECT eventsql.create_stream_v1('append_cost', 10, 1000000000, false, 1) \g /dev/null
SELECT stream_id AS id FROM eventsql.stream WHERE name = 'append_cost' \gset
SELECT eventsql.create_partitions_v1(:id, 10) \g /dev/null
CREATE TEMP TABLE cost (of text, events int, partitions int, us float8);

SELECT format($procedure$
    CREATE PROCEDURE pg_temp.measure_%1$s(p_events int, p_partitions int, p_calls int) LANGUAGE plpgsql AS $$
    DECLARE
        began      bigint;
        rows       int := p_events * p_partitions;
        producer   uuid := gen_random_uuid();
        known      text := eventsql.incarnation_v1();
        streams    text[] := array_fill('append_cost'::text, ARRAY[p_partitions]);
        ids        int[] := array_fill(%2$s, ARRAY[p_partitions]);
        partitions int[] := ARRAY(SELECT p FROM generate_series(0, p_partitions - 1) AS p);
        counts     int[] := array_fill(p_events, ARRAY[p_partitions]);
        groups     int[] := ARRAY(SELECT g FROM generate_series(1, p_partitions) AS g, generate_series(1, p_events));
        indexes    int[] := ARRAY(SELECT x FROM generate_series(1, p_partitions), generate_series(0, p_events - 1) AS x);
        keys       text[] := array_fill('customer-1234'::text, ARRAY[rows]);
        payloads   bytea[] := array_fill(convert_to(repeat('x', 200), 'UTF8'), ARRAY[rows]);
        headers    text[] := array_fill('{"a": "b"}'::text, ARRAY[rows]);
        bases      bigint[];
    BEGIN
        FOR number IN -9 .. p_calls LOOP -- the first ten plan the statements
            IF number = 1 THEN
                began := split_part(pg_read_file('/proc/self/schedstat'), ' ', 1);
            END IF;
            bases := eventsql.%1$s(producer, number, 1, known, 5000, %3$s,
                partitions, counts, groups, indexes, keys, payloads, headers);
            COMMIT;
        END LOOP;
        INSERT INTO cost
        SELECT '%1$s', p_events, p_partitions,
               (split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint - began) / 1000.0 / p_calls;
        COMMIT;
    END $$
    $procedure$, name, :id, arguments)
FROM (VALUES ('append_v1', 'streams, ids'), ('append_v2_' || :id, '''append_cost''')) AS f (name, arguments) \gexec

SELECT format('CALL pg_temp.measure_%s(%s, %s, %s)', f.name, s.events, s.partitions, s.calls)
FROM generate_series(1, 7) AS round,
     (VALUES (1, 1, 1000), (5, 1, 1000), (100, 1, 200), (1000, 1, 40), (1, 10, 400)) AS s (events, partitions, calls),
     (VALUES ('append_v1'), ('append_v2_' || :id)) AS f (name)
ORDER BY round, s.partitions, s.events, f.name \gexec

SELECT events AS "events per partition", partitions,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FILTER (WHERE of = 'append_v1')) AS "append_v1",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FILTER (WHERE of <> 'append_v1')) AS "of the stream"
FROM cost GROUP BY events, partitions ORDER BY partitions, events;

SELECT eventsql.begin_delete_stream_v1('append_cost') \g /dev/null
SELECT eventsql.drop_deleted_stream_v1('append_cost', 1000) FROM generate_series(1, 3) \g /dev/null
