-- EventSQL: fetching from a busy stream with plans that are kept.
--
-- fetch_v2 plans the query of each segment that it reads, which costs more than reading a few new events. A busy stream gets
-- a function of its own, with a static query for each segment that its heads are in or come to next.

INSERT INTO eventsql.schema_version (version, description) VALUES (18, 'fetch');

-- Creates the fetch function of a stream, or replaces it if it lacks a segment. Returns its name in this schema; NULL if
-- there is no such stream, if it has too many partitions, or if another session is creating it.
--
-- The function has the parameters of fetch_v2 and returns the same rows; only a page with gaps may end with its segment
-- before it is full. One statement finds the heads of all partitions, and the segments of those with new events. A page is
-- read by the static query of its segment; an unusual page by fetch_v2: one that goes beyond its segment, has large events,
-- or is in a segment that the function does not know. What it knows of dropped segments is not used, because the catalog
-- names the segment of each page. Its settings apply whenever its queries are planned, so they remain scans of the primary
-- keys.
--
-- Called now and then by the members that fetch much, so it changes nothing where nothing has changed. No append, fetch or
-- change of a segment waits for it: PostgreSQL locks no function that is called.
--
-- Indexes: the primary keys of stream, segment and producer_batch.
CREATE FUNCTION eventsql.prepare_fetch_v1(p_stream_id int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    partitions_max CONSTANT int := 50;                 -- each page with events is compared with the names of all segments
    segments_each  CONSTANT int := 2;                  -- of each partition: that of the head, and the next one
    stream         record;
    function_name  text;
    existing       regprocedure;
    queries        text;
    body           text;
BEGIN
    SELECT s.name, s.table_name, s.partitions INTO stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF NOT FOUND OR stream.partitions > partitions_max THEN
        RETURN NULL;
    END IF;
    function_name := stream.table_name || '__fetch';
    SELECT string_agg(format(
               E'        WHEN %1$L THEN\n'
               '            RETURN QUERY\n'
               '            SELECT CASE WHEN e.erased_at IS NULL THEN request.page ELSE -1 - request.page END,\n'
               '                   e.event_offset, e.key, e.value, e.headers, e.published_at\n'
               '            FROM eventsql.%1$I e\n'
               '            WHERE e.event_offset >= request.from_offset ORDER BY e.event_offset LIMIT p_max_events;\n',
               g.table_name), '' ORDER BY p.partition, g.first_offset)
    INTO queries
    FROM eventsql.stream_partition p
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    CROSS JOIN LATERAL (
        SELECT s.table_name, s.first_offset FROM eventsql.segment s
        WHERE s.stream_id = p.stream_id AND s.partition = p.partition AND s.first_offset >= (
            SELECT c.first_offset FROM eventsql.segment c
            WHERE c.stream_id = p.stream_id AND c.partition = p.partition AND c.first_offset <= h.next_offset
            ORDER BY c.first_offset DESC LIMIT 1)
        ORDER BY s.first_offset LIMIT segments_each) g
    WHERE p.stream_id = p_stream_id;
    IF queries IS NULL THEN
        RETURN NULL;
    END IF;
    body := format($body$
DECLARE
    request record;
    rows int;
BEGIN
    IF p_stream_id <> %s OR p_stream <> %L THEN -- which fetch_v2 rejects
        RETURN QUERY
        SELECT * FROM eventsql.fetch_v2(
            p_incarnation, p_stream_id, p_stream, p_partitions, p_offsets, p_max_events, p_max_bytes);
        RETURN;
    END IF;
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR request IN
        SELECT r.number::int - 1 AS page, r.partition, r.from_offset, r.max_bytes, h.next_offset AS head, s.end_offset,
               CASE WHEN least(h.next_offset, r.from_offset + p_max_events) <= s.end_offset
                     AND 2000 * least(p_max_events, h.next_offset - r.from_offset) <= r.max_bytes
                     AND pg_relation_size((
                             SELECT c.reltoastrelid FROM pg_class c
                             WHERE c.oid = to_regclass(format('eventsql.%%I', s.table_name)))) = 0
                    THEN s.table_name END AS segment
        FROM unnest(p_partitions, p_offsets, p_max_bytes)
            WITH ORDINALITY AS r (partition, from_offset, max_bytes, number)
        CROSS JOIN LATERAL (
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = p_stream_id AND b.partition = r.partition
            ORDER BY b.next_offset DESC LIMIT 1) h
        LEFT JOIN LATERAL (
            SELECT g.table_name, g.end_offset FROM eventsql.segment g
            WHERE g.stream_id = p_stream_id AND g.partition = r.partition AND g.first_offset <= r.from_offset
            ORDER BY g.first_offset DESC LIMIT 1) s ON true
        WHERE h.next_offset > r.from_offset
    LOOP
        CASE request.segment
%s        ELSE
            RETURN QUERY
            SELECT CASE WHEN f.page < 0 THEN -1 - request.page ELSE request.page END,
                   f.event_offset, f.key, f.value, f.headers, f.published_at
            FROM eventsql.fetch_v2(
                p_incarnation, p_stream_id, p_stream, ARRAY[request.partition], ARRAY[request.from_offset], p_max_events,
                ARRAY[request.max_bytes]) f;
            CONTINUE;
        END CASE;
        GET DIAGNOSTICS rows = ROW_COUNT;
        IF rows = 0 OR (rows < p_max_events AND request.end_offset >= request.head) THEN -- no event: the end of the range
            page := request.page;
            event_offset := least(request.head, request.end_offset);
            RETURN NEXT;
        END IF;
    END LOOP;
END $body$, p_stream_id, stream.name, queries);

    existing := to_regprocedure(format('eventsql.%I(text, int, text, int[], bigint[], int, bigint[])', function_name));
    IF EXISTS (SELECT FROM pg_proc p WHERE p.oid = existing AND p.prosrc = body) THEN
        RETURN function_name;
    END IF;
    -- "ESFE": two sessions that replace a function at the same time would fail.
    IF NOT pg_try_advisory_xact_lock(1163085381, p_stream_id) THEN
        RETURN NULL;
    END IF;
    -- Waits for a deletion of the stream, which would not drop this function.
    PERFORM FROM eventsql.stream s WHERE s.stream_id = p_stream_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    EXECUTE format($create$
CREATE OR REPLACE FUNCTION eventsql.%I(
    p_incarnation text, p_stream_id int, p_stream text, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz)
LANGUAGE plpgsql STABLE -- as fetch_v2
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET work_mem = '64MB'
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS %L$create$, function_name, body);
    RETURN function_name;
END $$;

-- Drops the fetch function of a stream that is deleted.
CREATE FUNCTION eventsql.drop_fetch_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('DROP FUNCTION IF EXISTS eventsql.%I(text, int, text, int[], bigint[], int, bigint[])',
        OLD.table_name || '__fetch');
    RETURN NULL;
END $$;
CREATE TRIGGER fetch_function AFTER DELETE ON eventsql.stream
    FOR EACH ROW EXECUTE FUNCTION eventsql.drop_fetch_v1();

-- Where roles.sql was applied, the roles that consume may prepare fetches before it is applied again.
DO $$
DECLARE
    grantee text;
BEGIN
    REVOKE ALL ON FUNCTION eventsql.prepare_fetch_v1, eventsql.drop_fetch_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.erased_offsets_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.prepare_fetch_v1 TO %s', grantee);
    END LOOP;
END $$;
