-- Measures how long the erasure of a key takes (docs/erasure.md): it reads the whole stream, then writes the files of the
-- segments anew that had events of the key.
--
-- Usage, in a new database with the schema of the library; choose more gigabytes than the server has memory:
--     psql -X -d DATABASE -v gigabytes=10 -v value_bytes=1000 -v keys=100000 -f scripts/erasure_time.sql
--
-- The stream has four partitions. The events of a key are next to each other, 20 at a time, so that a part of the segments has
-- none of them. The steps are those of EventSql.erase with its defaults, one transaction for 10,000 offsets, without the
-- pauses of 10 ms.

\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
SET client_min_messages = warning;

SELECT eventsql.create_stream_v1('persons', 4, 250000, false, 1) \g /dev/null
SELECT stream_id FROM eventsql.stream WHERE name = 'persons' \gset
SELECT eventsql.create_partitions_v1(:stream_id, 4) \g /dev/null

CREATE PROCEDURE public.fill(its_stream int, gigabytes numeric, value_bytes int, keys int) LANGUAGE plpgsql AS $$
DECLARE
    batch   CONSTANT bigint := 50000;
    -- Whole segments: the file of one that publishers write to is not written anew.
    batches bigint := 5 * ceil(gigabytes * 1e9 / (value_bytes + 100) / 4 / (5 * batch));
BEGIN
    FOR b IN 0 .. batches - 1 LOOP
        FOR p IN 0 .. 3 LOOP
            PERFORM eventsql.ensure_segments_v1(NULL, its_stream, p, batch);
            COMMIT;
            INSERT INTO eventsql.events_persons (partition, event_offset, key, value, published_at)
            SELECT p, b * batch + o, 'k' || (b * batch + o) / 20 % keys, repeat('x', value_bytes)::bytea, clock_timestamp()
            FROM generate_series(0, batch - 1) AS o;
            INSERT INTO eventsql.producer_batch
            VALUES (its_stream, p, (b + 1) * batch, b * batch, gen_random_uuid(), 1, clock_timestamp());
            COMMIT;
        END LOOP;
    END LOOP;
END $$;

CREATE TABLE public.phase (name text, began_at timestamptz, erased bigint, files int);

CREATE PROCEDURE public.erase(erasure uuid, stream text, key text) LANGUAGE plpgsql AS $$
DECLARE
    step   record;
    former text := '';
BEGIN
    PERFORM eventsql.begin_erasure_v1(erasure, stream, key, '{}', '{}');
    COMMIT;
    LOOP
        SELECT * INTO step FROM eventsql.erase_step_v1(erasure, 10000);
        IF step.phase <> former THEN
            INSERT INTO public.phase VALUES (step.phase, clock_timestamp(), step.erased, step.files);
            former := step.phase;
        END IF;
        COMMIT;
        EXIT WHEN step.phase = 'done';
        IF step.is_waiting THEN
            RAISE EXCEPTION 'the erasure waits: %', step.reason;
        END IF;
    END LOOP;
END $$;

CALL public.fill(:stream_id, :gigabytes, :value_bytes, :keys);
VACUUM (FREEZE, ANALYZE);
CHECKPOINT;
SELECT sum(pg_total_relation_size(inhrelid)) AS bytes
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE c.relkind = 'r' AND c.relname LIKE 'events\_persons\_\_p%' \gset
CALL public.erase(gen_random_uuid(), 'persons', 'k7');

SELECT round(:bytes / 1e9, 1) AS gigabytes, e.erased AS events, f.files,
       round(extract(epoch FROM e.began_at - s.began_at), 1) AS scan_s,
       round(extract(epoch FROM d.began_at - f.began_at), 1) AS files_s,
       round(extract(epoch FROM e.began_at - s.began_at) * 1e11 / :bytes, 0) AS scan_s_per_100_gb
FROM public.phase s, public.phase e, public.phase f, public.phase d
WHERE s.name = 'events' AND e.name = 'copies' AND f.name = 'files' AND d.name = 'done';
