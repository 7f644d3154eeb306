-- EventSQL: a page of the events of a key is limited in bytes, too.

INSERT INTO eventsql.schema_version (version, description) VALUES (43, 'key pages');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- A segment that is added at the same time would have no function of the new kind.
LOCK TABLE eventsql.segment IN SHARE ROW EXCLUSIVE MODE;

-- As in version 36, but the function reads no further than to the row that brings keys, values and headers, or blocks, to p_max_bytes.
-- One more row follows that one, without its value, if there is one. A loop reads no large value of the rows after it, and an array of
-- all of them could exceed what PostgreSQL allows.
CREATE OR REPLACE FUNCTION eventsql.create_key_reader_v1(p_stream_id int, p_table text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    settings text := '';
    query    text;
    body     text;
BEGIN
    IF (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_id) = 'rows' THEN
        -- Written such that only the index of keys has this order: a plan that is kept must not depend on how small the segment was.
        query := 'SELECT event_offset, value, headers::text, published_at, erased_at IS NOT NULL, NULL::int, NULL::int[],'
            ' NULL::timestamptz[]'
            ' FROM eventsql.%I'
            ' WHERE hashtextextended(key, 0) >= p_hash AND hashtextextended(key, 0) <= p_hash AND key = p_key'
            ' AND event_offset >= p_from'
            ' ORDER BY hashtextextended(key, 0), event_offset LIMIT p_max';
    ELSE
        settings := ' SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = on SET enable_sort = on';
        query := 'SELECT event_offset, block, NULL::text, published_at, false, events, distances, erased_at'
            ' FROM eventsql.%I'
            ' WHERE events > 0 AND eventsql.block_keys_v1(block, events) @> ARRAY[p_hash] AND event_offset >= p_from'
            ' ORDER BY event_offset LIMIT p_max';
    END IF;
    body := format($reader$
DECLARE
    own    eventsql.key_event;
    result eventsql.key_event[];
    bytes  bigint := 0;
BEGIN
    FOR own IN
        %s
    LOOP
        IF bytes >= p_max_bytes THEN
            own.value := NULL;
        END IF;
        result := array_append(result, own);
        EXIT WHEN bytes >= p_max_bytes;
        bytes := bytes + octet_length(p_key) + coalesce(octet_length(own.value), 0) + coalesce(octet_length(own.headers), 0);
    END LOOP;
    RETURN result;
END $reader$, format(query, p_table));
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION eventsql.%I (p_hash bigint, p_key text, p_from bigint, p_max int, p_max_bytes bigint)'
        ' RETURNS eventsql.key_event[] LANGUAGE plpgsql STABLE%s AS %L', p_table, settings, body);
END $$;

SELECT eventsql.create_key_reader_v1(g.stream_id, g.table_name)
FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)
WHERE s.key_tracking = 'index';

-- As in version 41, also the function of this version. That of version 36 stays with the segments that have it, because an instance of
-- the previous release may be calling it.
CREATE OR REPLACE FUNCTION eventsql.drop_key_reader_v1(p_table regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning -- most segments have none
AS $$
BEGIN
    EXECUTE format(
        'DROP FUNCTION IF EXISTS eventsql.%1$I (bigint, text, bigint, int), eventsql.%1$I (bigint, text, bigint, int, bigint)',
        (SELECT c.relname FROM pg_class c WHERE c.oid = p_table));
END $$;

-- Instances of the previous release call it, by read_key_v3: it calls the functions of this version, which read all rows for it.
DO $$
DECLARE
    former     CONSTANT text := '($1, $2, $3, $4))';
    latter     CONSTANT text := '($1, $2, $3, $4, 9223372036854775807))';
    definition text := pg_get_functiondef('eventsql.read_key_in_partition_v1'::regproc);
BEGIN
    IF strpos(definition, former) = 0 THEN
        RAISE EXCEPTION 'read_key_in_partition_v1 is not the one of an earlier version';
    END IF;
    EXECUTE replace(definition, former, latter);
END $$;

-- Returns the events of a key from a position on, in order, as read_key_v3 does: at most p_max rows, and none after the one that brings
-- keys, values and headers, or blocks, to p_max_bytes. If there are more, the last row is no event: it has no published_at, and its
-- partition and event_offset are where the next page begins. With each row the key's version; one row without an offset: there are no
-- events. One snapshot: what the version counts is in the stream, also if the key has moved.
--
-- p_slot: the slot of the key, whose number no growth changes. p_max, p_max_bytes: 1 at least.
--
-- Rows are taken one by one, so what is read does not exceed the page by much, and no value of a row that is not in it, however large.
-- Those of functions are fetched one at a time: a loop would call the functions of segments ahead, with the values that these have.
--
-- Indexes: the primary keys of key_version, key_segment and segment, and the index of keys of each segment that has such events. Each
-- segment is named, so the cost does not depend on the number of the others. Takes no row lock.
--
-- Errors: ES023 the stream has no index of keys.
CREATE FUNCTION eventsql.read_key_v4(
    p_stream text, p_slot int, p_key text, p_from_partition int, p_from bigint, p_max int, p_max_bytes bigint)
RETURNS TABLE (
    version bigint, partition int, event_offset bigint, value bytea, headers text, published_at timestamptz, is_erased boolean,
    events int, distances int[], erased_at timestamptz[])
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
#variable_conflict use_column
DECLARE
    few           CONSTANT int := 16;
    segments_each CONSTANT int := 64;
    hash          CONSTANT bigint := hashtextextended(p_key, 0);
    key_bytes     CONSTANT int := octet_length(p_key);
    stream        record;
    own           int;
    begins_at     bigint;
    tables        text[];
    first         int;
    query         text;
    found_rows    refcursor;
    rows_left     int := p_max;
    bytes_left    bigint := p_max_bytes;
    has_more      boolean := false;
BEGIN
    SELECT s.stream_id, s.partitions, s.storage INTO stream
    FROM eventsql.stream s WHERE s.name = p_stream AND s.key_tracking = 'index';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream % has no index of keys', p_stream USING ERRCODE = 'ES023';
    END IF;
    version := eventsql.key_version_v1(p_stream, p_slot % stream.partitions, p_key);
    <<reading>>
    FOREACH own IN ARRAY eventsql.partitions_of_slot_v1(stream.stream_id, p_slot) LOOP
        CONTINUE WHEN own < p_from_partition;
        SELECT greatest(CASE WHEN own = p_from_partition THEN p_from ELSE 0 END, p.log_start) INTO begins_at
        FROM eventsql.stream_partition p WHERE p.stream_id = stream.stream_id AND p.partition = own;
        tables := ARRAY(
            SELECT DISTINCT ON (g.first_offset) g.table_name -- segments that were merged have one table
            FROM eventsql.key_segment k
            CROSS JOIN LATERAL (
                SELECT s.table_name, s.first_offset, s.end_offset FROM eventsql.segment s
                WHERE s.stream_id = stream.stream_id AND s.partition = own AND s.first_offset <= k.first_offset
                ORDER BY s.first_offset DESC LIMIT 1) g
            WHERE k.stream_id = stream.stream_id AND k.partition = own AND k.key_hash = hash
              AND k.first_offset >= coalesce(( -- segments that were merged have the first offset of the first one
                  SELECT f.first_offset FROM eventsql.segment f
                  WHERE f.stream_id = stream.stream_id AND f.partition = own AND f.first_offset <= begins_at
                  ORDER BY f.first_offset DESC LIMIT 1), 0)
              AND g.end_offset > greatest(k.first_offset, begins_at)
            ORDER BY g.first_offset);
        CONTINUE WHEN tables = '{}';
        partition := own;
        IF stream.storage = 'rows' AND cardinality(tables) <= few THEN
            -- One statement whose plan is not kept, because most keys have events in a few segments: all sessions together would keep
            -- many.
            SELECT string_agg(format(
                       'SELECT event_offset, value, headers, published_at, erased_at FROM eventsql.%I'
                       ' WHERE hashtextextended(key, 0) = $1 AND key = $2 AND event_offset >= $3', t.name), ' UNION ALL ')
            INTO query
            FROM unnest(tables) AS t (name);
            FOR event_offset, value, headers, published_at, is_erased, events, distances, erased_at IN EXECUTE
                'SELECT event_offset, value, headers::text, published_at, erased_at IS NOT NULL, NULL::int, NULL::int[],'
                ' NULL::timestamptz[] FROM (' || query || ') AS events ORDER BY event_offset LIMIT $4'
            USING hash, p_key, begins_at, rows_left + 1
            LOOP
                has_more := rows_left = 0 OR bytes_left <= 0;
                EXIT reading WHEN has_more;
                RETURN NEXT;
                rows_left := rows_left - 1;
                bytes_left := bytes_left - key_bytes - coalesce(octet_length(value), 0) - coalesce(octet_length(headers), 0);
            END LOOP;
            CONTINUE;
        END IF;
        -- The functions are called one after the other, in this order, until there are enough events.
        first := 1;
        WHILE first <= cardinality(tables) LOOP
            SELECT string_agg(format('(eventsql.%I($1, $2, $3, $4, $5))', t.name), ',')
            INTO query
            FROM unnest(tables[first : first + segments_each - 1]) AS t (name);
            OPEN found_rows NO SCROLL FOR EXECUTE
                'SELECT e.* FROM (VALUES ' || query || ') AS segment (events) CROSS JOIN LATERAL unnest(segment.events) AS e'
            USING hash, p_key, begins_at, rows_left + 1, bytes_left;
            LOOP
                FETCH found_rows INTO event_offset, value, headers, published_at, is_erased, events, distances, erased_at;
                EXIT WHEN NOT FOUND;
                has_more := rows_left = 0 OR bytes_left <= 0;
                EXIT WHEN has_more;
                RETURN NEXT;
                rows_left := rows_left - 1;
                bytes_left := bytes_left - key_bytes - coalesce(octet_length(value), 0) - coalesce(octet_length(headers), 0);
            END LOOP;
            CLOSE found_rows;
            EXIT reading WHEN has_more;
            first := first + segments_each;
        END LOOP;
    END LOOP;
    IF has_more THEN
        event_offset := event_offset - coalesce(distances[1], events - 1, 0); -- of a block, that of its first event
        value := NULL;
        headers := NULL;
        published_at := NULL;
        RETURN NEXT;
    ELSIF rows_left = p_max THEN
        partition := NULL;
        event_offset := NULL;
        RETURN NEXT;
    END IF;
END $$;
