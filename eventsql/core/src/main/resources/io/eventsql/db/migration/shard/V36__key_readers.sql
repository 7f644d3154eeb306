-- EventSQL: reading the events of a key with plans that are kept, also of streams that store blocks (decision 54).

INSERT INTO eventsql.schema_version (version, description) VALUES (36, 'key readers');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

ALTER TABLE eventsql.stream DROP CONSTRAINT stream_blocks_without_key_index;

-- As in version 28, also of a stream with an index of keys.
CREATE OR REPLACE FUNCTION eventsql.count_key_blocks_v1() RETURNS trigger
LANGUAGE plpgsql
SET jit = off
AS $$
DECLARE
    id         int := TG_ARGV[0];
    partitions int[];
    keys       text[];
    counts     int[];
BEGIN
    IF coalesce(current_setting('eventsql.counted', true), '') <> 'on' THEN -- else they were counted before
        SELECT array_agg(e.partition), array_agg(e.key), array_agg(e.events)
        INTO partitions, keys, counts
        FROM (
            SELECT b.partition, u.key, count(*)::int AS events
            FROM new_events b
            CROSS JOIN LATERAL (SELECT e.key FROM eventsql.block_events_v1(b.block, b.events) AS e OFFSET 0) AS u
            WHERE u.key IS NOT NULL
            GROUP BY b.partition, u.key) e;
        IF keys IS NOT NULL THEN
            PERFORM eventsql.raise_key_versions_v1(id, eventsql.key_homes_v1(id, partitions, keys), keys, counts);
        END IF;
    END IF;
    IF TG_ARGV[1] = 'index' THEN
        INSERT INTO eventsql.key_segment (stream_id, partition, key_hash, first_offset)
        SELECT DISTINCT id, b.partition, unnest(eventsql.block_keys_v1(b.block, b.events)), g.first_offset
        FROM new_events b
        CROSS JOIN LATERAL (
            SELECT s.first_offset FROM eventsql.segment s
            WHERE s.stream_id = id AND s.partition = b.partition AND s.first_offset <= b.event_offset
            ORDER BY s.first_offset DESC LIMIT 1) g
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

-- An event of a key; or, if events is not NULL, a block with that many events, in which the key has one: event_offset is that of its
-- last event, value is the block, and distances and erased_at are its columns.
CREATE TYPE eventsql.key_event AS (
    event_offset bigint,
    value        bytea,
    headers      text,
    published_at timestamptz,
    is_erased    boolean,
    events       int,
    distances    int[],
    erased_at    timestamptz[]
);

-- Creates the function that returns the events of a key in a segment from an offset on, in order, at most p_max of them or of the blocks
-- in which they are. It has the name of the segment's table. A session keeps its plan, because parsing and planning such a statement
-- takes five times as long as executing it.
CREATE FUNCTION eventsql.create_key_reader_v1(p_stream_id int, p_table text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    settings text := '';
    query    text;
BEGIN
    IF (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_id) = 'rows' THEN
        -- Written such that only the index of keys has this order: a plan that is kept must not depend on how small the segment was.
        query := 'SELECT ROW(event_offset, value, headers, published_at, erased_at IS NOT NULL, NULL, NULL, NULL)::eventsql.key_event'
            ' FROM eventsql.%I'
            ' WHERE hashtextextended(key, 0) >= p_hash AND hashtextextended(key, 0) <= p_hash AND key = p_key'
            ' AND event_offset >= p_from'
            ' ORDER BY hashtextextended(key, 0), event_offset LIMIT p_max';
    ELSE
        settings := ' SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = on SET enable_sort = on';
        query := 'SELECT ROW(event_offset, block, NULL, published_at, false, events, distances, erased_at)::eventsql.key_event'
            ' FROM eventsql.%I'
            ' WHERE events > 0 AND eventsql.block_keys_v1(block, events) @> ARRAY[p_hash] AND event_offset >= p_from'
            ' ORDER BY event_offset LIMIT p_max';
    END IF;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION eventsql.%I (p_hash bigint, p_key text, p_from bigint, p_max int) RETURNS eventsql.key_event[]'
        ' LANGUAGE plpgsql STABLE%s AS %L',
        p_table, settings, 'BEGIN RETURN ARRAY(' || format(query, p_table) || '); END');
END $$;

-- As in version 21, also of a segment of blocks, and with the function that reads the events of a key in it.
CREATE OR REPLACE FUNCTION eventsql.index_keys_of_segment_v1() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT s.key_tracking FROM eventsql.stream s WHERE s.stream_id = NEW.stream_id) = 'index' THEN
        PERFORM eventsql.add_key_index_v1(NEW.table_name);
        PERFORM eventsql.create_key_reader_v1(NEW.stream_id, NEW.table_name);
    END IF;
    RETURN NULL;
END $$;

-- Drops the functions that read keys in tables which do not exist any more. A table that was replaced still has readers.
CREATE FUNCTION eventsql.drop_key_readers_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    reader record;
BEGIN
    IF NOT EXISTS (SELECT FROM deleted_rows) THEN
        RETURN NULL;
    END IF;
    FOR reader IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.prorettype = 'eventsql.key_event[]'::regtype AND to_regclass(format('eventsql.%I', p.proname)) IS NULL
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s', reader.name);
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_key_readers AFTER DELETE ON eventsql.segment
    REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT EXECUTE FUNCTION eventsql.drop_key_readers_v1();
CREATE TRIGGER drop_key_readers AFTER DELETE ON eventsql.replaced_table
    REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT EXECUTE FUNCTION eventsql.drop_key_readers_v1();
CREATE TRIGGER drop_key_readers AFTER DELETE ON eventsql.deleted_stream
    REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT EXECUTE FUNCTION eventsql.drop_key_readers_v1();

REVOKE ALL ON FUNCTION eventsql.create_key_reader_v1, eventsql.drop_key_readers_v1 FROM PUBLIC;

SELECT eventsql.create_key_reader_v1(g.stream_id, g.table_name)
FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)
WHERE s.key_tracking = 'index';

-- Returns the events of a key in a partition from an offset on, in order, at most p_max rows.
--
-- Indexes: the primary keys of key_segment and segment, and the index of keys of each segment that has such events. Each segment is
-- named, so the cost does not depend on the number of the others. Takes no row lock.
CREATE FUNCTION eventsql.read_key_in_partition_v1(p_stream_id int, p_partition int, p_key text, p_from bigint, p_max int)
RETURNS SETOF eventsql.key_event
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_generic_plan
SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    few           CONSTANT int := 16;
    segments_each CONSTANT int := 64;
    hash          CONSTANT bigint := hashtextextended(p_key, 0);
    begins_at     bigint;
    storage       text;
    tables        text[];
    first         int := 1;
    query         text;
    left_over     int := p_max;
    rows          int;
BEGIN
    SELECT greatest(p_from, p.log_start), s.storage INTO begins_at, storage
    FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.stream_id = p_stream_id AND p.partition = p_partition;
    tables := ARRAY(
        SELECT DISTINCT ON (g.first_offset) g.table_name -- segments that were merged have one table
        FROM eventsql.key_segment k
        CROSS JOIN LATERAL (
            SELECT s.table_name, s.first_offset, s.end_offset FROM eventsql.segment s
            WHERE s.stream_id = p_stream_id AND s.partition = p_partition AND s.first_offset <= k.first_offset
            ORDER BY s.first_offset DESC LIMIT 1) g
        WHERE k.stream_id = p_stream_id AND k.partition = p_partition AND k.key_hash = hash
          AND g.end_offset > greatest(k.first_offset, begins_at)
        ORDER BY g.first_offset);
    IF tables = '{}' THEN
        RETURN;
    END IF;
    IF storage = 'rows' AND cardinality(tables) <= few THEN
        -- One statement whose plan is not kept, because most keys have events in a few segments: all sessions together would keep many.
        SELECT string_agg(format(
                   'SELECT event_offset, value, headers, published_at, erased_at FROM eventsql.%I'
                   ' WHERE hashtextextended(key, 0) = $1 AND key = $2 AND event_offset >= $3', t.name), ' UNION ALL ')
        INTO query
        FROM unnest(tables) AS t (name);
        RETURN QUERY EXECUTE
            'SELECT event_offset, value, headers::text, published_at, erased_at IS NOT NULL, NULL::int, NULL::int[], NULL::timestamptz[]'
            ' FROM (' || query || ') AS events ORDER BY event_offset LIMIT $4'
        USING hash, p_key, begins_at, p_max;
        RETURN;
    END IF;
    -- The functions are called one after the other, in this order, until there are enough events.
    WHILE first <= cardinality(tables) AND left_over > 0 LOOP
        SELECT string_agg(format('(eventsql.%I($1, $2, $3, $4))', t.name), ',')
        INTO query
        FROM unnest(tables[first : first + segments_each - 1]) AS t (name);
        RETURN QUERY EXECUTE
            'SELECT e.* FROM (VALUES ' || query || ') AS segment (events) CROSS JOIN LATERAL unnest(segment.events) AS e LIMIT $4'
        USING hash, p_key, begins_at, left_over;
        GET DIAGNOSTICS rows = ROW_COUNT;
        left_over := left_over - rows;
        first := first + segments_each;
    END LOOP;
END $$;

-- Returns the events of a key from a position on, in order, at most p_max rows: first those of the partition that it had first. And
-- with each row the key's version. One row without an offset: there are none. One snapshot: what the version counts is in the stream,
-- also if the key has moved.
--
-- p_slot: the slot of the key, whose number no growth changes.
--
-- Indexes: those of read_key_in_partition_v1, the primary key of key_version. Takes no row lock.
--
-- Errors: ES023 the stream has no index of keys.
CREATE FUNCTION eventsql.read_key_v3(
    p_stream text, p_slot int, p_key text, p_from_partition int, p_from bigint, p_max int)
RETURNS TABLE (
    version bigint, partition int, event_offset bigint, value bytea, headers text, published_at timestamptz, is_erased boolean,
    events int, distances int[], erased_at timestamptz[])
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    stream    record;
    key_now   bigint;
    own       int;
    left_over int := p_max;
    rows      int;
BEGIN
    SELECT s.stream_id, s.partitions INTO stream FROM eventsql.stream s WHERE s.name = p_stream AND s.key_tracking = 'index';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream % has no index of keys', p_stream USING ERRCODE = 'ES023';
    END IF;
    key_now := eventsql.key_version_v1(p_stream, p_slot % stream.partitions, p_key);
    FOREACH own IN ARRAY eventsql.partitions_of_slot_v1(stream.stream_id, p_slot) LOOP
        CONTINUE WHEN own < p_from_partition;
        RETURN QUERY
        SELECT key_now, own, r.*
        FROM eventsql.read_key_in_partition_v1(
            stream.stream_id, own, p_key, CASE WHEN own = p_from_partition THEN p_from ELSE 0 END, left_over) r;
        GET DIAGNOSTICS rows = ROW_COUNT;
        left_over := left_over - rows;
        EXIT WHEN left_over = 0;
    END LOOP;
    IF left_over = p_max THEN
        version := key_now;
        RETURN NEXT;
    END IF;
END $$;
