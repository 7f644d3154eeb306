-- EventSQL: the last event of a key, and the view of the current state of all keys. Both need compaction, which gives each
-- segment an index of keys.

INSERT INTO eventsql.schema_version (version, description) VALUES (13, 'latest');

-- Looks for the last event of a key in a partition, from the newest segment to the oldest: an index probe for each. p_from,
-- p_below: the offsets to search; NULL: from the log's start, up to the head. Returns the event, also one without a value. If
-- there is none in p_segments_max segments, continue_below is where to continue the search; NULL: it is finished. head: the offset
-- of the next event, as of the search.
--
-- One snapshot sees all segments. A search that continues in another statement has another one: it begins anew with the
-- offsets from the former head on, because what it has not found may have been superseded and removed since.
--
-- Indexes: the primary key of segment, producer_batch_head, and the index of keys of each segment. Takes no row lock. Each
-- segment is named, so the locks and the cost depend on the number of segments that are searched alone.
--
-- A segment that began before compaction was switched on gets its index only after it has ended. Until then it is searched by
-- its primary key, backwards, as long as that reads at most 10,000 offsets.
--
-- Errors: ES004 the partition does not exist; ES016 the stream has no compaction; ES017 a segment has no index of keys yet, and
-- is too large to be searched without one.
CREATE FUNCTION eventsql.find_latest_v1(
    p_stream text, p_partition int, p_key text, p_from bigint, p_below bigint, p_segments_max int,
    OUT head bigint, OUT continue_below bigint, OUT event_offset bigint, OUT value bytea, OUT headers json,
    OUT published_at timestamptz, OUT erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    offsets_without_index_max CONSTANT bigint := 10000;
    stream   record;
    segment  record;
    id       oid;
    lowest   bigint;
    below    bigint;
    searched int := 0;
BEGIN
    SELECT s.stream_id, s.compaction, p.log_start INTO stream
    FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.name = p_stream AND p.partition = p_partition;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream USING ERRCODE = 'ES004';
    ELSIF NOT stream.compaction THEN
        RAISE EXCEPTION 'stream % has no compaction, so there is no index of its keys', p_stream USING ERRCODE = 'ES016';
    END IF;
    SELECT b.next_offset INTO head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = stream.stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    lowest := greatest(stream.log_start, p_from);
    below := least(head, p_below);

    WHILE below > lowest LOOP
        IF searched = p_segments_max THEN
            continue_below := below;
            RETURN;
        END IF;
        SELECT * INTO segment FROM eventsql.segment_at_v1(stream.stream_id, p_partition, below - 1);
        IF segment.table_name IS NULL THEN -- a segment that was dropped by hand
            SELECT coalesce(max(g.end_offset), lowest) INTO below
            FROM eventsql.segment g
            WHERE g.stream_id = stream.stream_id AND g.partition = p_partition AND g.end_offset < below;
            CONTINUE;
        END IF;
        id := to_regclass(format('eventsql.%I', segment.table_name));
        IF id IS NOT NULL THEN
            IF below - greatest(lowest, segment.first_offset) > offsets_without_index_max AND NOT EXISTS (
                SELECT FROM pg_index i
                WHERE i.indrelid = id AND i.indisvalid AND i.indexprs IS NOT NULL AND i.indpred IS NOT NULL)
            THEN
                RAISE EXCEPTION 'segment % has no index of keys yet', segment.table_name USING ERRCODE = 'ES017';
            END IF;
            EXECUTE format(
                'SELECT event_offset, value, headers, published_at, erased_at FROM eventsql.%I'
                ' WHERE hashtextextended(key, 0) = hashtextextended($1, 0) AND key = $1'
                ' AND event_offset >= $2 AND event_offset < $3'
                ' ORDER BY event_offset DESC LIMIT 1', segment.table_name)
            INTO event_offset, value, headers, published_at, erased_at USING p_key, lowest, below;
            searched := searched + 1;
            IF event_offset IS NOT NULL THEN
                RETURN;
            END IF;
        END IF;
        below := segment.first_offset;
    END LOOP;
END $$;

-- Returns the last event of a key in a partition, unless it is a tombstone: no row or one. An erased event has erased_at and no
-- value. Searches all segments in the worst case, and locks each of them until the end of the transaction (ACCESS SHARE).
--
-- Indexes, errors: those of find_latest_v1.
CREATE FUNCTION eventsql.latest_v1(p_stream text, p_partition int, p_key text)
RETURNS TABLE (
    event_offset bigint, value bytea, headers json, published_at timestamptz, erased_at timestamptz)
LANGUAGE sql STABLE
AS $$
    SELECT l.event_offset, l.value, l.headers, l.published_at, l.erased_at
    FROM eventsql.find_latest_v1(p_stream, p_partition, p_key, NULL, NULL, NULL) l
    WHERE l.event_offset IS NOT NULL AND (l.value IS NOT NULL OR l.erased_at IS NOT NULL)
$$;

-- Creates, replaces or drops the view of the current state of a stream's keys, as the stream's row says: one row for each key
-- whose last event has a value. Leaves a view that is right as it is. To be called when compaction or json may have changed, in
-- the same transaction. Needs the rights of the owner.
--
-- Errors: 2BP01 other views use the view that is to be dropped or replaced.
CREATE FUNCTION eventsql.apply_latest_view_v1(p_stream text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stream     record;
    events     text;
    view       text;
    value_type regtype;
BEGIN
    SELECT s.table_name, s.compaction, s.json INTO STRICT stream FROM eventsql.stream s WHERE s.name = p_stream;
    events := format('eventsql.%I', stream.table_name);
    view := format('eventsql.%I', stream.table_name || '__latest');
    SELECT a.atttypid INTO value_type
    FROM pg_attribute a WHERE a.attrelid = to_regclass(view) AND a.attname = 'value';
    IF stream.compaction AND (value_type = 'jsonb'::regtype) = stream.json THEN
        RETURN;
    END IF;
    EXECUTE format('DROP VIEW IF EXISTS %s', view);
    IF NOT stream.compaction THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE VIEW %s AS'
        ' SELECT l.partition, l.key, l.event_offset, %s AS value, e.headers, e.published_at'
        ' FROM ('
        '  SELECT partition, key, max(event_offset) AS event_offset'
        '  FROM %s WHERE key IS NOT NULL GROUP BY partition, key'
        ' ) AS l JOIN %s AS e ON e.partition = l.partition AND e.event_offset = l.event_offset'
        ' WHERE e.value IS NOT NULL',
        view, CASE WHEN stream.json THEN 'eventsql.json_or_null(e.value)' ELSE 'e.value' END, events, events);
    PERFORM eventsql.copy_grants_v1(events::regclass, view::regclass);
END $$;

REVOKE ALL ON FUNCTION eventsql.apply_latest_view_v1 FROM PUBLIC;
