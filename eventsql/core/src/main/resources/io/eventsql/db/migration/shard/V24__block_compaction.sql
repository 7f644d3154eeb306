-- EventSQL: compaction of streams that store blocks, and the last event of a key in them.
--
-- A block is rewritten without the events that go, and never merged with another one. It keeps its event_offset, also without
-- its last event: distances says which offsets are left. So whatever finds a block by an offset still does.

INSERT INTO eventsql.schema_version (version, description) VALUES (24, 'block compaction');

-- Returns the hashes of the keys of a block: the elements of the index of keys.
CREATE FUNCTION eventsql.block_keys_v1(p_block bytea, p_events int) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT DISTINCT hashtextextended(e.key, 0) FROM eventsql.block_events_v1(p_block, p_events) e WHERE e.key IS NOT NULL);

-- As in version 12, also of a segment of blocks: there, all keys of a block are elements of its entry. The condition, which
-- holds for every block, tells it from the indexes of users, as that of rows does. New entries are gathered, up to 256 kB.
CREATE OR REPLACE FUNCTION eventsql.add_key_index_v1(p_segment_table text) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = to_regclass(format('eventsql.%I', p_segment_table))
          AND i.indexprs IS NOT NULL AND i.indpred IS NOT NULL)
    THEN
        RETURN false;
    END IF;
    IF EXISTS (
        SELECT FROM pg_attribute a
        WHERE a.attrelid = to_regclass(format('eventsql.%I', p_segment_table)) AND a.attname = 'block')
    THEN
        EXECUTE format(
            'CREATE INDEX ON eventsql.%I USING gin (eventsql.block_keys_v1(block, events))'
            ' WITH (gin_pending_list_limit = 256) WHERE events > 0', p_segment_table);
    ELSE
        EXECUTE format(
            'CREATE INDEX ON eventsql.%I (hashtextextended(key, 0), event_offset) WHERE key IS NOT NULL', p_segment_table);
    END IF;
    RETURN true;
END $$;

-- As in version 12. A block that loses events is written anew, so the table of such a segment grows before it shrinks: it is
-- also rewritten when it has twice the size of what is left.
CREATE OR REPLACE FUNCTION eventsql.is_sparse_v1(p_segment eventsql.segment) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p_segment.state = 'closed'
       AND (c.stored - p_segment.removed_events <= (c.stored - p_segment.rewritten_events) / 2 OR (
           (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_segment.stream_id) = 'blocks'
           AND pg_total_relation_size(to_regclass(format('eventsql.%I', p_segment.table_name))) >= 2 * p_segment.bytes
               * ((c.stored - p_segment.removed_events)::numeric / greatest(1, c.stored - p_segment.rewritten_events))))
       AND p_segment.removed_events > p_segment.rewritten_events
       AND p_segment.bytes > 131072
       AND p_segment.bytes * ((c.stored - p_segment.removed_events)::numeric
           / greatest(1, c.stored - p_segment.rewritten_events)) <= 134217728
    FROM (SELECT p_segment.end_offset - p_segment.first_offset) AS c (stored)
$$;

-- Returns how many events of a segment a step is to visit from an offset on, at most p_max but for those of a block, and the
-- offset after them: it is within the segment if there are more. has_tombstones: whether one of them is a tombstone; NULL: it
-- is not known, because they are in blocks.
CREATE FUNCTION eventsql.compaction_chunk_v1(
    p_storage text, p_segment text, p_from bigint, p_max bigint, OUT events bigint, OUT end_offset bigint,
    OUT has_tombstones boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
BEGIN
    IF p_storage = 'rows' THEN
        EXECUTE format(
            'SELECT count(*), max(event_offset) + 1, bool_or(is_tombstone) FROM ('
            '  SELECT event_offset, value IS NULL AND erased_at IS NULL AND key IS NOT NULL AS is_tombstone'
            '  FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2) AS e', p_segment)
        INTO events, end_offset, has_tombstones USING p_from, p_max;
    ELSE
        EXECUTE format(
            'SELECT coalesce(sum(events), 0), max(event_offset) + 1 FROM ('
            '  SELECT event_offset, events, sum(events) OVER (ORDER BY event_offset ROWS UNBOUNDED PRECEDING) AS sum'
            '  FROM (SELECT event_offset, events FROM eventsql.%I'
            '        WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2) AS b'
            ') AS counted WHERE sum - events < $2', p_segment)
        INTO events, end_offset USING p_from, p_max;
    END IF;
END $$;

-- As in version 12, also of blocks.
CREATE OR REPLACE FUNCTION eventsql.collect_keys_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    ends_at     timestamptz := clock_timestamp() + interval '50 ms';
    events_left bigint := 5000;
    pass        record;
    segment     record;
    chunk       record;
    chunk_end   bigint;
    stored      text;
    events      text;
BEGIN
    SELECT * INTO pass FROM eventsql.compaction_pass;
    SELECT s.storage INTO STRICT stored FROM eventsql.stream s WHERE s.stream_id = pass.stream_id;
    events := CASE stored
        WHEN 'rows' THEN 'SELECT event_offset AS row_offset, event_offset, key FROM eventsql.%I'
        ELSE
            'SELECT b.event_offset AS row_offset, b.event_offset - coalesce(b.distances[u.n], b.events - u.n) AS event_offset,'
            '       u.key'
            ' FROM eventsql.%I AS b CROSS JOIN LATERAL eventsql.block_events_v1(b.block, b.events) AS u' END;
    WHILE pass.next_offset < pass.end_offset AND events_left > 0 AND clock_timestamp() < ends_at LOOP
        SELECT * INTO segment
        FROM eventsql.closed_segment_from_v1(pass.stream_id, pass.partition, pass.next_offset) g
        WHERE g.end_offset <= pass.end_offset;
        IF NOT FOUND THEN
            pass.next_offset := pass.end_offset;
            EXIT;
        END IF;
        pass.next_offset := greatest(pass.next_offset, segment.first_offset);
        IF to_regclass(format('eventsql.%I', segment.table_name)) IS NULL THEN -- dropped by hand
            pass.next_offset := segment.end_offset;
            CONTINUE;
        ELSIF eventsql.add_key_index_v1(segment.table_name) THEN
            EXIT; -- a step of its own
        END IF;
        chunk := eventsql.compaction_chunk_v1(stored, segment.table_name, pass.next_offset, events_left);
        chunk_end := CASE WHEN chunk.events < events_left THEN segment.end_offset ELSE chunk.end_offset END;
        EXECUTE format(
            'INSERT INTO eventsql.compaction_key AS k (key_hash, last_offset)'
            ' SELECT eventsql.key_hash_v1(n.key), n.last_offset'
            ' FROM (SELECT e.key, max(e.event_offset) AS last_offset FROM (' || events || ') AS e'
            '       WHERE e.row_offset >= $1 AND e.row_offset < $2 AND e.key IS NOT NULL GROUP BY e.key) AS n'
            ' ON CONFLICT (key_hash) DO UPDATE SET last_offset = excluded.last_offset', segment.table_name)
        USING pass.next_offset, chunk_end;
        events_left := events_left - chunk.events;
        pass.next_offset := chunk_end;
    END LOOP;
    UPDATE eventsql.compaction_pass
    SET next_offset = CASE WHEN pass.next_offset < pass.end_offset THEN pass.next_offset ELSE 0 END,
        phase = CASE WHEN pass.next_offset < pass.end_offset THEN 'collect' ELSE 'remove' END;
END $$;

-- Leaves the events of one block whose numbers are given, in their order. No number: deletes the row. The row may become larger
-- than what fits on a page, because distances has an element for each event: then it is cut. Locks the row.
--
-- Index: the primary key of the segment.
CREATE FUNCTION eventsql.reduce_block_v1(p_segment text, p_event_offset bigint, p_kept int[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    row_bytes_max CONSTANT int := 8000; -- with the elements of the arrays
    count         int := coalesce(cardinality(p_kept), 0);
    first         int := 1;
    own           record;
    part          int[];
    kept          record;
    above         int; -- how far the offset of the part's last event is below event_offset
BEGIN
    IF count = 0 THEN
        EXECUTE format('DELETE FROM eventsql.%I WHERE event_offset = $1', p_segment) USING p_event_offset;
        RETURN;
    END IF;
    EXECUTE format(
        'SELECT partition, events, published_at, block, distances, erased_at FROM eventsql.%I WHERE event_offset = $1'
        ' FOR UPDATE', p_segment)
    INTO own USING p_event_offset;
    WHILE first <= count LOOP
        part := p_kept[first:count];
        LOOP
            SELECT count(*)::int AS events,
                   eventsql.pack_block_v1(
                       array_agg(e.key ORDER BY e.n), array_agg(e.value ORDER BY e.n), array_agg(e.headers ORDER BY e.n)) AS block,
                   array_agg(coalesce(own.distances[e.n], own.events - e.n) ORDER BY e.n) AS distances,
                   CASE WHEN count(own.erased_at[e.n]) > 0 THEN array_agg(own.erased_at[e.n] ORDER BY e.n) END AS erased_at
            INTO kept
            FROM eventsql.block_events_v1(own.block, own.events) e
            WHERE e.n = ANY (part);
            EXIT WHEN kept.events = 1
                OR octet_length(kept.block) + kept.events * CASE WHEN kept.erased_at IS NULL THEN 4 ELSE 13 END <= row_bytes_max;
            part := part[:kept.events / 2];
        END LOOP;
        first := first + kept.events;
        IF first > count THEN
            EXECUTE format(
                'UPDATE eventsql.%I SET events = $2, block = $3, distances = $4, erased_at = $5 WHERE event_offset = $1',
                p_segment)
            USING p_event_offset, kept.events, kept.block,
                  CASE WHEN kept.distances[1] >= kept.events THEN kept.distances END, -- otherwise no offset is missing
                  kept.erased_at;
        ELSE
            above := kept.distances[kept.events];
            EXECUTE format(
                'INSERT INTO eventsql.%I (partition, event_offset, events, published_at, block, distances, erased_at)'
                ' VALUES ($1, $2, $3, $4, $5, $6, $7)', p_segment)
            USING own.partition, p_event_offset - above, kept.events, own.published_at, kept.block,
                  CASE WHEN kept.distances[1] - above >= kept.events
                      THEN ARRAY(SELECT d - above FROM unnest(kept.distances) AS d) END,
                  kept.erased_at;
        END IF;
    END LOOP;
END $$;

-- Removes superseded events and tombstones from the blocks of a closed segment that end in a range of offsets: as
-- remove_superseded_v1 does from rows. p_superseded: whether keys were collected. remaining: when the oldest tombstone that is
-- left was published; NULL: there is none.
--
-- Indexes: the primary keys of the segment's table and of compaction_key. Locks the rows that it changes. The numbers of the
-- events in a block do not change until then: only compaction changes them.
CREATE FUNCTION eventsql.remove_from_blocks_v1(
    p_segment text, p_from bigint, p_below bigint, p_superseded boolean, p_dirty_offset bigint, p_tombstone_delay interval,
    p_handled_by_active bigint, p_handled_by_all bigint, p_abandoned_after interval,
    OUT removed bigint, OUT tombstones bigint, OUT remaining timestamptz)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    own record;
BEGIN
    removed := 0;
    tombstones := 0;
    -- OFFSET 0: each key is decoded and looked up once.
    FOR own IN EXECUTE format(
        'SELECT b.event_offset, b.published_at, c.*'
        ' FROM eventsql.%I AS b CROSS JOIN LATERAL ('
        '   SELECT array_agg(n ORDER BY n) FILTER (WHERE NOT is_superseded AND NOT is_expired) AS kept,'
        '          count(*) FILTER (WHERE is_superseded) AS superseded,'
        '          count(*) FILTER (WHERE is_expired AND NOT is_superseded) AS expired,'
        '          count(*) FILTER (WHERE is_tombstone AND NOT is_superseded AND NOT is_expired) AS left_tombstones'
        '   FROM ('
        '     SELECT n, is_tombstone,'
        '            $3 AND key IS NOT NULL AND EXISTS ('
        '              SELECT FROM eventsql.compaction_key k'
        '              WHERE k.key_hash = eventsql.key_hash_v1(e.key) AND k.last_offset > e.event_offset) AS is_superseded,'
        '            is_tombstone AND e.event_offset < $4 AND b.published_at < clock_timestamp() - $5'
        '              AND ($6 IS NULL OR e.event_offset < $6)'
        '              AND ($7 IS NULL OR e.event_offset < $7 OR b.published_at < clock_timestamp() - $8) AS is_expired'
        '     FROM ('
        '       SELECT u.n, u.key, b.event_offset - coalesce(b.distances[u.n], b.events - u.n) AS event_offset,'
        '              u.value IS NULL AND u.key IS NOT NULL AND b.erased_at[u.n] IS NULL AS is_tombstone'
        '       FROM eventsql.block_events_v1(b.block, b.events) AS u OFFSET 0) AS e OFFSET 0) AS judged'
        ' ) AS c WHERE b.event_offset >= $1 AND b.event_offset < $2 ORDER BY b.event_offset', p_segment)
        USING p_from, p_below, p_superseded, p_dirty_offset, p_tombstone_delay, p_handled_by_active, p_handled_by_all,
              p_abandoned_after
    LOOP
        IF own.superseded + own.expired > 0 THEN
            PERFORM eventsql.reduce_block_v1(p_segment, own.event_offset, own.kept);
            removed := removed + own.superseded;
            tombstones := tombstones + own.expired;
        END IF;
        IF own.left_tombstones > 0 THEN
            remaining := least(remaining, own.published_at);
        END IF;
    END LOOP;
END $$;

-- As in version 12, also of blocks.
CREATE OR REPLACE FUNCTION eventsql.remove_superseded_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    ends_at     timestamptz := clock_timestamp() + interval '50 ms';
    events_left bigint := 5000;
    pass        record;
    handled     record;
    segment     record;
    chunk       record;
    chunk_end   bigint;
    removed     bigint;
    tombstones  bigint;
    remaining   timestamptz;
BEGIN
    SELECT p.*, s.tombstone_delay, s.abandoned_after, s.storage INTO STRICT pass
    FROM eventsql.compaction_pass p JOIN eventsql.stream s USING (stream_id);
    SELECT * INTO handled
    FROM eventsql.handled_offsets_v1(pass.stream_id, pass.partition, pass.abandoned_after);
    WHILE pass.next_offset < pass.end_offset AND events_left > 0 AND clock_timestamp() < ends_at LOOP
        SELECT * INTO segment
        FROM eventsql.closed_segment_from_v1(pass.stream_id, pass.partition, pass.next_offset) g
        WHERE g.end_offset <= pass.end_offset;
        IF NOT FOUND THEN
            pass.next_offset := pass.end_offset;
            EXIT;
        END IF;
        pass.next_offset := greatest(pass.next_offset, segment.first_offset);
        IF to_regclass(format('eventsql.%I', segment.table_name)) IS NULL THEN -- dropped by hand
            pass.next_offset := segment.end_offset;
            CONTINUE;
        END IF;
        chunk := eventsql.compaction_chunk_v1(pass.storage, segment.table_name, pass.next_offset, events_left);
        chunk_end := CASE WHEN chunk.events < events_left THEN segment.end_offset ELSE chunk.end_offset END;

        removed := 0;
        tombstones := 0;
        IF pass.storage = 'blocks' THEN
            SELECT r.removed, r.tombstones, least(pass.oldest_tombstone_at, r.remaining)
            INTO removed, tombstones, pass.oldest_tombstone_at
            FROM eventsql.remove_from_blocks_v1(
                segment.table_name, pass.next_offset, chunk_end, pass.end_offset > pass.dirty_offset, pass.dirty_offset,
                pass.tombstone_delay, handled.by_active, handled.by_all, pass.abandoned_after) r;
        ELSIF pass.end_offset > pass.dirty_offset AND chunk.events > 0 THEN -- otherwise no keys were collected
            EXECUTE format(
                'DELETE FROM eventsql.%I e USING eventsql.compaction_key k'
                ' WHERE e.event_offset >= $1 AND e.event_offset < $2 AND e.key IS NOT NULL'
                '   AND k.key_hash = eventsql.key_hash_v1(e.key) AND k.last_offset > e.event_offset', segment.table_name)
            USING pass.next_offset, chunk_end;
            GET DIAGNOSTICS removed = ROW_COUNT;
        END IF;
        IF chunk.has_tombstones THEN -- of rows
            EXECUTE format(
                'DELETE FROM eventsql.%I e WHERE e.event_offset >= $1 AND e.event_offset < $2'
                '   AND e.value IS NULL AND e.erased_at IS NULL AND e.key IS NOT NULL'
                '   AND e.event_offset < $3 AND e.published_at < clock_timestamp() - $4'
                '   AND ($5 IS NULL OR e.event_offset < $5)'
                '   AND ($6 IS NULL OR e.event_offset < $6 OR e.published_at < clock_timestamp() - $7)',
                segment.table_name)
            USING pass.next_offset, chunk_end, pass.dirty_offset, pass.tombstone_delay, handled.by_active,
                  handled.by_all, pass.abandoned_after;
            GET DIAGNOSTICS tombstones = ROW_COUNT;
            EXECUTE format(
                'SELECT min(e.published_at) FROM eventsql.%I e WHERE e.event_offset >= $1 AND e.event_offset < $2'
                ' AND e.value IS NULL AND e.erased_at IS NULL AND e.key IS NOT NULL', segment.table_name)
            INTO remaining USING pass.next_offset, chunk_end;
            pass.oldest_tombstone_at := least(pass.oldest_tombstone_at, remaining);
        END IF;
        IF removed + tombstones > 0 OR coalesce(segment.compacted_through, 0) < chunk_end THEN
            UPDATE eventsql.segment g
            SET compacted_through = greatest(g.compacted_through, chunk_end),
                removed_events = g.removed_events + removed + tombstones
            WHERE g.stream_id = pass.stream_id AND g.partition = pass.partition
              AND g.first_offset = segment.first_offset;
        END IF;
        pass.removed_events := pass.removed_events + removed + tombstones;
        pass.removed_tombstones := pass.removed_tombstones + tombstones;
        events_left := events_left - chunk.events;
        pass.next_offset := chunk_end;
    END LOOP;

    IF pass.next_offset >= pass.end_offset THEN
        INSERT INTO eventsql.compaction_progress AS c
            (stream_id, partition, clean_offset, compacted_at, oldest_tombstone_at)
        VALUES (pass.stream_id, pass.partition, pass.end_offset, clock_timestamp(), pass.oldest_tombstone_at)
        ON CONFLICT (stream_id, partition) DO UPDATE
        SET clean_offset = excluded.clean_offset, compacted_at = excluded.compacted_at,
            oldest_tombstone_at = excluded.oldest_tombstone_at;
        PERFORM eventsql.forget_keys_v1();
    END IF;
    UPDATE eventsql.compaction_pass p
    SET next_offset = CASE WHEN pass.next_offset < pass.end_offset THEN pass.next_offset ELSE 0 END,
        phase = CASE WHEN pass.next_offset < pass.end_offset THEN 'remove' ELSE 'rewrite' END,
        oldest_tombstone_at = pass.oldest_tombstone_at, removed_events = pass.removed_events,
        removed_tombstones = pass.removed_tombstones;
END $$;

-- As in version 12, also of blocks.
CREATE OR REPLACE FUNCTION eventsql.replace_segments_v1(
    p_stream_id int, p_partition int, p_first_offset bigint, p_end_offset bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    stream       record;
    of_partition text;
    replaced     record;
    name         text;
    number       bigint;
    columns      text;
    copied       bigint := 0;
    events       bigint;
    published    timestamptz;
    bytes_before bigint := 0;
    bytes_after  bigint;
BEGIN
    SELECT s.table_name, s.compaction, s.storage INTO STRICT stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    of_partition := format('eventsql.%I', stream.table_name || '__p' || p_partition);
    PERFORM pg_advisory_xact_lock(1163085127, hashtext(of_partition)); -- as for adding segments
    number := (
        SELECT max(g.number) + 1 FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition);
    name := stream.table_name || '__p' || p_partition || '_v' || number;
    IF octet_length(name) > 63 OR to_regclass(format('eventsql.%I', name)) IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be created', name USING ERRCODE = '42P07';
    END IF;
    columns := (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
        FROM pg_attribute a
        WHERE a.attrelid = of_partition::regclass AND a.attnum > 0 AND NOT a.attisdropped);

    -- The options are those of create_segment_v1. With a user's indexes, which attaching it would create otherwise.
    EXECUTE format(
        'CREATE TABLE eventsql.%I ('
        '  LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING INDEXES,'
        '  PRIMARY KEY (event_offset),'
        '  CONSTRAINT eventsql_range CHECK (partition = %s AND event_offset >= %s AND event_offset < %s)'
        ') WITH ('
        '  autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,'
        '  autovacuum_analyze_threshold = 500000, autovacuum_analyze_scale_factor = 0.5,'
        '  vacuum_truncate = false, toast.vacuum_truncate = false%s)',
        name, of_partition, p_partition, p_first_offset, p_end_offset,
        CASE stream.storage WHEN 'rows' THEN '' ELSE ', toast_tuple_target = 8160' END);
    EXECUTE format(
        'ALTER TABLE eventsql.%I ALTER COLUMN %I SET STATISTICS 0', name, -- as in create_segment_v1
        CASE stream.storage WHEN 'rows' THEN 'value' ELSE 'block' END);
    FOR replaced IN
        SELECT g.table_name, g.last_published_at
        FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'closed'
          AND g.first_offset >= p_first_offset AND g.end_offset <= p_end_offset
        ORDER BY g.first_offset
        FOR UPDATE
    LOOP
        EXECUTE format('LOCK TABLE ONLY eventsql.%I IN SHARE MODE NOWAIT', replaced.table_name);
        EXECUTE format(
            'INSERT INTO eventsql.%1$I (%2$s) SELECT %2$s FROM eventsql.%3$I ORDER BY event_offset',
            name, columns, replaced.table_name);
        GET DIAGNOSTICS events = ROW_COUNT;
        IF stream.storage = 'blocks' THEN
            EXECUTE format('SELECT coalesce(sum(events), 0) FROM eventsql.%I', replaced.table_name) INTO events;
        END IF;
        copied := copied + events;
        bytes_before := bytes_before + pg_total_relation_size(format('eventsql.%I', replaced.table_name)::regclass);
        published := greatest(published, replaced.last_published_at);
    END LOOP;
    PERFORM eventsql.add_key_index_v1(name) WHERE stream.compaction;
    PERFORM eventsql.copy_grants_v1(format('eventsql.%I', stream.table_name)::regclass, format('eventsql.%I', name)::regclass);

    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition AND p.log_start <= p_first_offset
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the segments have expired' USING ERRCODE = '40001';
    END IF;
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', of_partition);
    FOR replaced IN
        DELETE FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'closed'
          AND g.first_offset >= p_first_offset AND g.end_offset <= p_end_offset
        RETURNING g.table_name
    LOOP
        EXECUTE format('ALTER TABLE %s DETACH PARTITION eventsql.%I', of_partition, replaced.table_name);
        EXECUTE format(
            'CREATE TRIGGER eventsql_replaced BEFORE INSERT OR UPDATE OR DELETE ON eventsql.%I'
            ' FOR EACH STATEMENT EXECUTE FUNCTION eventsql.reject_change_v1()', replaced.table_name);
        INSERT INTO eventsql.replaced_table (table_name, replaced_at) VALUES (replaced.table_name, clock_timestamp());
    END LOOP;
    -- The constraint spares it the scan.
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION eventsql.%I FOR VALUES FROM (%s) TO (%s)',
        of_partition, name, p_first_offset, p_end_offset);
    EXECUTE format('ALTER TABLE eventsql.%I DROP CONSTRAINT eventsql_range', name);
    bytes_after := pg_total_relation_size(format('eventsql.%I', name)::regclass);
    INSERT INTO eventsql.segment
        (stream_id, partition, first_offset, end_offset, number, table_name, state, last_published_at, bytes,
         compacted_through, removed_events, rewritten_events)
    VALUES (p_stream_id, p_partition, p_first_offset, p_end_offset, number, name, 'closed', published, bytes_after,
            p_end_offset, p_end_offset - p_first_offset - copied, p_end_offset - p_first_offset - copied);
    UPDATE eventsql.compaction_pass SET returned_bytes = returned_bytes + greatest(0, bytes_before - bytes_after);
END $$;

-- Returns the offset of the last block of a segment among those that end in a range of offsets, whose index entry has a key's
-- hash. NULL: there is none.
--
-- Index: that of keys alone. The primary key is no alternative: it would lead through all blocks of the range, so the offsets
-- are written such that it does not apply.
CREATE FUNCTION eventsql.last_block_of_key_v1(p_segment text, p_key text, p_from bigint, p_upto bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_indexscan = off
SET enable_indexonlyscan = off
SET enable_bitmapscan = on
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $$
DECLARE
    result bigint;
BEGIN
    EXECUTE format(
        'SELECT max(event_offset + 0) FROM eventsql.%I'
        ' WHERE events > 0 AND eventsql.block_keys_v1(block, events) @> ARRAY[hashtextextended($1, 0)]'
        ' AND event_offset + 0 >= $2 AND event_offset + 0 <= $3', p_segment)
    INTO result USING p_key, p_from, p_upto;
    RETURN result;
END $$;

-- Returns the last event of a key in the blocks of a segment, from p_from on and below p_below: one row, or none. p_newest: how
-- many blocks to search backwards, before those are that the index of keys leads to; NULL: all of them, without the index.
--
-- Indexes: the primary key of the segment and its index of keys. Takes no row lock.
CREATE FUNCTION eventsql.find_latest_in_blocks_v1(
    p_segment text, p_key text, p_from bigint, p_below bigint, p_newest int)
RETURNS TABLE (event_offset bigint, value bytea, headers json, published_at timestamptz, erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET jit = off
AS $$
DECLARE
    last  bigint; -- the offset of the block to search next
    query text := format(
        'SELECT b.event_offset - coalesce(b.distances[e.n], b.events - e.n), e.value, e.headers::json, b.published_at,'
        '       b.erased_at[e.n]'
        ' FROM (SELECT * FROM eventsql.%I WHERE event_offset >= $1 AND event_offset <= $2'
        '       ORDER BY event_offset DESC LIMIT $3) AS b'
        ' CROSS JOIN LATERAL ('
        '   SELECT u.n, u.value, u.headers FROM eventsql.block_events_v1(b.block, b.events) AS u'
        '   WHERE u.key = $4 AND b.event_offset - coalesce(b.distances[u.n], b.events - u.n) BETWEEN $1 AND $5 - 1'
        '   ORDER BY u.n DESC LIMIT 1) AS e'
        ' WHERE position(convert_to($4, ''UTF8'') IN b.block) > 0'
        ' ORDER BY b.event_offset DESC LIMIT 1', p_segment);
BEGIN
    EXECUTE format(
        'SELECT event_offset FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT 1', p_segment)
    INTO last USING p_below - 1;
    last := coalesce(last, p_below - 1);
    IF p_newest > 0 OR p_newest IS NULL THEN
        RETURN QUERY EXECUTE query USING p_from, last, p_newest, p_key, p_below;
        IF FOUND OR p_newest IS NULL THEN
            RETURN;
        END IF;
    END IF;
    LOOP
        last := eventsql.last_block_of_key_v1(p_segment, p_key, p_from, last);
        EXIT WHEN last IS NULL;
        RETURN QUERY EXECUTE query USING p_from, last, 1, p_key, p_below;
        EXIT WHEN FOUND;
        last := last - 1; -- another key has the same hash, or its events are not in the range
    END LOOP;
END $$;

-- As in version 13, also in blocks.
CREATE OR REPLACE FUNCTION eventsql.find_latest_v1(
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
    newest_blocks             CONSTANT int := 16; -- where the last event of a frequent key is
    stream    record;
    segment   record;
    id        oid;
    has_index boolean;
    lowest    bigint;
    below     bigint;
    searched  int := 0;
BEGIN
    SELECT s.stream_id, s.compaction, s.storage, p.log_start INTO stream
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
            has_index := EXISTS (
                SELECT FROM pg_index i
                WHERE i.indrelid = id AND i.indisvalid AND i.indexprs IS NOT NULL AND i.indpred IS NOT NULL);
            IF NOT has_index AND below - greatest(lowest, segment.first_offset) > offsets_without_index_max THEN
                RAISE EXCEPTION 'segment % has no index of keys yet', segment.table_name USING ERRCODE = 'ES017';
            END IF;
            IF stream.storage = 'blocks' THEN
                SELECT f.event_offset, f.value, f.headers, f.published_at, f.erased_at
                INTO event_offset, value, headers, published_at, erased_at
                FROM eventsql.find_latest_in_blocks_v1(
                    segment.table_name, p_key, lowest, below,
                    CASE WHEN NOT has_index THEN NULL WHEN searched = 0 THEN newest_blocks ELSE 0 END) f;
            ELSE
                EXECUTE format(
                    'SELECT event_offset, value, headers, published_at, erased_at FROM eventsql.%I'
                    ' WHERE hashtextextended(key, 0) = hashtextextended($1, 0) AND key = $1'
                    ' AND event_offset >= $2 AND event_offset < $3'
                    ' ORDER BY event_offset DESC LIMIT 1', segment.table_name)
                INTO event_offset, value, headers, published_at, erased_at USING p_key, lowest, below;
            END IF;
            searched := searched + 1;
            IF event_offset IS NOT NULL THEN
                RETURN;
            END IF;
        END IF;
        below := segment.first_offset;
    END LOOP;
END $$;
