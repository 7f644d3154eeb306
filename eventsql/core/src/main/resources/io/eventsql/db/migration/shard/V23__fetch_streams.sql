-- EventSQL: fetching from several streams at once.
--
-- A process that consumes many streams asks for new events of all of them in one statement. What has none costs a lookup of
-- its head. The others are read by fetch_v2, or fetch_blocks_v1, which remain the definition of a page.

INSERT INTO eventsql.schema_version (version, description) VALUES (23, 'fetch streams');

-- Reads a page of each of several partitions of streams that store rows, as fetch_v2 does for one stream. p_stream_ids,
-- p_streams, p_partitions, p_offsets, p_max_events and p_max_bytes have an element for each page, and page is its number,
-- from 0 on. A partition that does not exist any more has no page.
--
-- Indexes: producer_batch_head and the primary key of stream; those of fetch_v2. Takes no row lock.
--
-- Errors: those of fetch_v2. An error of one page is that of the statement.
CREATE FUNCTION eventsql.fetch_streams_v1(
    p_incarnation text, p_stream_ids int[], p_streams text[], p_partitions int[], p_offsets bigint[],
    p_max_events int[], p_max_bytes bigint[])
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
AS $$
DECLARE
    request record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR request IN
        SELECT r.number::int - 1 AS page, r.stream_id, r.stream, r.partition, r.from_offset, r.max_events, r.max_bytes
        FROM unnest(p_stream_ids, p_streams, p_partitions, p_offsets, p_max_events, p_max_bytes)
            WITH ORDINALITY AS r (stream_id, stream, partition, from_offset, max_events, max_bytes, number)
        WHERE EXISTS ( -- a head beyond it; a scan from it on passes the entries of dead rows by
            SELECT FROM eventsql.producer_batch b
            WHERE b.stream_id = r.stream_id AND b.partition = r.partition AND b.next_offset > r.from_offset)
           OR r.stream <> (SELECT s.name FROM eventsql.stream s WHERE s.stream_id = r.stream_id) -- which fetch_v2 rejects
    LOOP
        RETURN QUERY
        SELECT CASE WHEN f.page < 0 THEN -1 - request.page ELSE request.page END,
               f.event_offset, f.key, f.value, f.headers, f.published_at
        FROM eventsql.fetch_v2(
            p_incarnation, request.stream_id, request.stream, ARRAY[request.partition], ARRAY[request.from_offset],
            request.max_events, ARRAY[request.max_bytes]) f;
    END LOOP;
END $$;

-- The same for streams that store blocks, with the rows of fetch_blocks_v1.
CREATE FUNCTION eventsql.fetch_block_streams_v1(
    p_incarnation text, p_stream_ids int[], p_streams text[], p_partitions int[], p_offsets bigint[],
    p_max_events int[], p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, events int, published_at timestamptz, block bytea, distances int[],
    erased_at timestamptz[])
LANGUAGE plpgsql STABLE -- as fetch_blocks_v1
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
AS $$
DECLARE
    request record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR request IN
        SELECT r.number::int - 1 AS page, r.stream_id, r.stream, r.partition, r.from_offset, r.max_events, r.max_bytes
        FROM unnest(p_stream_ids, p_streams, p_partitions, p_offsets, p_max_events, p_max_bytes)
            WITH ORDINALITY AS r (stream_id, stream, partition, from_offset, max_events, max_bytes, number)
        WHERE EXISTS ( -- a head beyond it; a scan from it on passes the entries of dead rows by
            SELECT FROM eventsql.producer_batch b
            WHERE b.stream_id = r.stream_id AND b.partition = r.partition AND b.next_offset > r.from_offset)
           OR r.stream <> (SELECT s.name FROM eventsql.stream s WHERE s.stream_id = r.stream_id) -- rejected as above
    LOOP
        RETURN QUERY
        SELECT request.page, f.event_offset, f.events, f.published_at, f.block, f.distances, f.erased_at
        FROM eventsql.fetch_blocks_v1(
            p_incarnation, request.stream_id, request.stream, ARRAY[request.partition], ARRAY[request.from_offset],
            request.max_events, ARRAY[request.max_bytes]) f;
    END LOOP;
END $$;
