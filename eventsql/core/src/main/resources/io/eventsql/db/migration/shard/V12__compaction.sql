-- EventSQL: compaction. Of the events of one key in a partition the last one stays. A tombstone, an event without a value
-- that was not erased, goes too when its delay has passed and every consumer has passed it.
--
-- A pass over a partition takes its dirty segments, closed since the last pass: it collects the last offset of each of their
-- keys, then removes from all closed segments the events that such an offset supersedes, returns the space of segments of
-- which less than half is left, and merges small ones. Each step is a short transaction that also records the position, so
-- any process continues after a crash at any point.

INSERT INTO eventsql.schema_version (version, description) VALUES (12, 'compaction');

-- The pass in progress, shared by all processes: the one that locks the row takes the next step. One round visits all
-- partitions of compacted streams.
CREATE TABLE eventsql.compaction_pass (
    singleton           boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    stream_id           int         NOT NULL DEFAULT 0,  -- the partition visited last
    partition           int         NOT NULL DEFAULT -1,
    -- idle: no pass is in progress; the others follow one another
    phase               text        NOT NULL DEFAULT 'idle' CONSTRAINT compaction_pass_phase_known
                        CHECK (phase IN ('idle', 'collect', 'remove', 'rewrite', 'merge')),
    dirty_offset        bigint      NOT NULL DEFAULT 0,  -- the dirty segments begin here
    end_offset          bigint      NOT NULL DEFAULT 0,  -- they end here
    next_offset         bigint      NOT NULL DEFAULT 0,  -- the phase has done what is below
    oldest_tombstone_at timestamptz,                     -- of those that the phase has left
    pass_began_at       timestamptz,
    is_running          boolean     NOT NULL DEFAULT false, -- the round is not finished
    round_began_at      timestamptz,
    removed_events      bigint      NOT NULL DEFAULT 0,  -- since the schema was created; with tombstones
    removed_tombstones  bigint      NOT NULL DEFAULT 0,
    returned_bytes      bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = false);
INSERT INTO eventsql.compaction_pass DEFAULT VALUES;

-- The keys of the dirty segments of the pass in progress. Emptied at its end, so it needs no vacuum.
CREATE TABLE eventsql.compaction_key (
    key_hash    bytea  PRIMARY KEY,
    last_offset bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_enabled = false);

-- How far each partition is compacted.
CREATE TABLE eventsql.compaction_progress (
    stream_id           int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition           int         NOT NULL,
    clean_offset        bigint      NOT NULL,            -- of each key, only the last event below it is left below it
    compacted_at        timestamptz NOT NULL,
    oldest_tombstone_at timestamptz,                     -- of those left below clean_offset; NULL: there is none
    retry_at            timestamptz,                     -- space that could not be returned is not tried before; NULL: none
    PRIMARY KEY (stream_id, partition)
) WITH (fillfactor = 50, vacuum_truncate = false);

-- Tables whose events were copied to another one. They are detached, and dropped after a minute: a statement that has found
-- their names before still reads them.
CREATE TABLE eventsql.replaced_table (
    table_name  text        PRIMARY KEY,
    replaced_at timestamptz NOT NULL
);

-- Returns the ranges of partitions of one stream in which events may have been removed by compaction, as far as they overlap
-- the given ones; adjacent ranges are not joined. Nothing below the log's start belongs to them. p_partitions, p_firsts,
-- p_nexts: one element for each given range; page is its number, from 0.
--
-- A page read before this call has no gap by compaction that is not in these ranges: an event and its range change together.
--
-- Indexes: the primary keys of segment and stream_partition. Takes no row lock.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.compacted_ranges_v1(
    p_incarnation text, p_stream_id int, p_partitions int[], p_firsts bigint[], p_nexts bigint[])
RETURNS TABLE (page int, first_offset bigint, next_offset bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        RETURN QUERY
        SELECT i - 1, greatest(g.first_offset, p.log_start), g.compacted_through
        FROM eventsql.stream_partition p
        JOIN eventsql.segment g ON g.stream_id = p.stream_id AND g.partition = p.partition
        WHERE p.stream_id = p_stream_id AND p.partition = p_partitions[i]
          AND g.first_offset < p_nexts[i]
          AND g.first_offset >= coalesce((
              SELECT l.first_offset FROM eventsql.segment l
              WHERE l.stream_id = p_stream_id AND l.partition = p_partitions[i] AND l.first_offset <= p_firsts[i]
              ORDER BY l.first_offset DESC LIMIT 1), 0)
          AND g.state = 'closed' AND g.compacted_through > greatest(p_firsts[i], g.first_offset, p.log_start)
        ORDER BY g.first_offset;
    END LOOP;
END $$;

-- Returns the first closed segment of a partition that has offsets from p_offset on.
CREATE FUNCTION eventsql.closed_segment_from_v1(p_stream_id int, p_partition int, p_offset bigint)
RETURNS SETOF eventsql.segment
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
    SELECT n.*
    FROM eventsql.segment n
    WHERE n.stream_id = p_stream_id AND n.partition = p_partition
      AND n.first_offset >= coalesce((
          SELECT g.first_offset FROM eventsql.segment g
          WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset <= p_offset
          ORDER BY g.first_offset DESC LIMIT 1), 0)
      AND n.end_offset > p_offset AND n.state = 'closed'
    ORDER BY n.first_offset LIMIT 1
$$;

-- Returns whether a segment is to be rewritten: less than half is left of what it had when it was last written as a whole.
-- Not if that is little, nor if so much is left that readers of the segment would wait too long.
CREATE FUNCTION eventsql.is_sparse_v1(p_segment eventsql.segment) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p_segment.state = 'closed'
       AND c.stored - p_segment.removed_events <= (c.stored - p_segment.rewritten_events) / 2
       AND p_segment.removed_events > p_segment.rewritten_events
       AND p_segment.bytes > 131072
       AND p_segment.bytes * ((c.stored - p_segment.removed_events)::numeric
           / greatest(1, c.stored - p_segment.rewritten_events)) <= 134217728
    FROM (SELECT p_segment.end_offset - p_segment.first_offset) AS c (stored)
$$;

-- Returns the run of neighbouring clean segments of a partition that is to be merged into one: the first that together have
-- 100,000 events and 64 MB at most, none of which has more than half of these events, or that are ten or more.
-- A segment is copied again only when its size has doubled, or nine others have become small. No row: there is none.
CREATE FUNCTION eventsql.segments_to_merge_v1(p_stream_id int, p_partition int, OUT first_offset bigint, OUT end_offset bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    events_max     CONSTANT bigint := 100000;
    bytes_max      CONSTANT bigint := 67108864; -- copying takes about a second
    segments_max   CONSTANT int := 20;          -- each takes places in the server's lock table
    segments_many  CONSTANT int := 10;
    clean_offset   bigint;
    segment        record;
    candidate      bigint;
    candidate_end  bigint;
    segments       int := 0;
    events         bigint := 0;
    largest        bigint := 0;
    bytes          bigint := 0;
BEGIN
    SELECT p.clean_offset INTO clean_offset
    FROM eventsql.compaction_progress p WHERE p.stream_id = p_stream_id AND p.partition = p_partition;
    FOR segment IN
        SELECT g.first_offset, g.end_offset, g.end_offset - g.first_offset - g.removed_events AS events, g.bytes,
               g.state = 'closed' AND g.compacted_through = g.end_offset AND g.bytes IS NOT NULL AS is_clean
        FROM eventsql.segment g
        JOIN eventsql.stream_partition p USING (stream_id, partition)
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.end_offset <= clean_offset
          AND g.first_offset >= p.log_start
        ORDER BY g.first_offset
    LOOP
        IF segment.is_clean AND segment.first_offset = candidate_end AND segments < segments_max
            AND events + segment.events <= events_max AND bytes + segment.bytes <= bytes_max
        THEN
            segments := segments + 1;
            events := events + segment.events;
            largest := greatest(largest, segment.events);
            bytes := bytes + segment.bytes;
            candidate_end := segment.end_offset;
        ELSE
            EXIT WHEN segments >= segments_many OR (segments > 1 AND largest <= events / 2);
            candidate := segment.first_offset;
            candidate_end := segment.end_offset;
            segments := CASE WHEN segment.is_clean THEN 1 ELSE 0 END;
            events := segment.events;
            largest := segment.events;
            bytes := segment.bytes;
            IF NOT segment.is_clean THEN
                candidate_end := NULL;
            END IF;
        END IF;
    END LOOP;
    IF segments >= segments_many OR (segments > 1 AND largest <= events / 2) THEN
        first_offset := candidate;
        end_offset := candidate_end;
    END IF;
END $$;

-- Returns the phase with which a pass over a partition is to begin, NULL if none is due, and its dirty segments: those closed
-- since the last pass are gathered until they have half as many bytes as the clean ones, or a day has passed.
CREATE FUNCTION eventsql.compaction_due_v1(
    p_stream_id int, p_partition int, OUT phase text, OUT dirty_offset bigint, OUT end_offset bigint,
    OUT dirty_segments bigint, OUT dirty_bytes bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    clean_per_dirty CONSTANT int := 2;
    dirty_max       CONSTANT interval := '1 day';
    events_max      CONSTANT bigint := 10000000; -- whose keys are collected: about 1 GB
    stream          record;
    progress        record;
    closed_end      bigint;
    dirty           record;
    clean_bytes     bigint;
BEGIN
    SELECT s.tombstone_delay, p.log_start INTO stream
    FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.stream_id = p_stream_id AND p.partition = p_partition AND s.compaction;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO progress
    FROM eventsql.compaction_progress c WHERE c.stream_id = p_stream_id AND c.partition = p_partition;
    dirty_offset := greatest(coalesce(progress.clean_offset, 0), stream.log_start);
    SELECT min(g.first_offset) INTO closed_end
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'open';
    SELECT count(*) AS segments, coalesce(sum(g.bytes), 0) AS bytes, min(g.last_published_at) AS since,
           min(g.end_offset) AS first_end
    INTO dirty
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'closed'
      AND g.end_offset > dirty_offset AND (closed_end IS NULL OR g.end_offset <= closed_end);
    dirty_segments := dirty.segments;
    dirty_bytes := dirty.bytes;
    SELECT coalesce(sum(g.bytes), 0) INTO clean_bytes
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'closed'
      AND g.end_offset <= dirty_offset;

    IF dirty.segments > 0
        AND (dirty.bytes * clean_per_dirty >= clean_bytes OR dirty.since < clock_timestamp() - dirty_max)
    THEN
        phase := 'collect';
        SELECT max(g.end_offset) INTO end_offset
        FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'closed'
          AND (closed_end IS NULL OR g.end_offset <= closed_end)
          AND g.end_offset <= greatest(dirty_offset + events_max, dirty.first_end);
        RETURN;
    END IF;
    end_offset := dirty_offset;
    IF progress.oldest_tombstone_at < clock_timestamp() - stream.tombstone_delay
        AND progress.compacted_at < clock_timestamp() - stream.tombstone_delay
    THEN
        phase := 'remove';
    ELSIF progress.retry_at < clock_timestamp() THEN
        phase := 'rewrite';
    END IF;
END $$;

-- Creates the index of keys of a segment that lacks it, such as one from before its stream was compacted. Returns whether
-- there was one to be created. Appends to the segment wait; there are none if it is closed.
CREATE FUNCTION eventsql.add_key_index_v1(p_segment_table text) RETURNS boolean
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
    EXECUTE format(
        'CREATE INDEX ON eventsql.%I (hashtextextended(key, 0), event_offset) WHERE key IS NOT NULL', p_segment_table);
    RETURN true;
END $$;

-- Creates the index of keys of the open segments of a partition that lack it, because the stream has been compacted since
-- they were added. A segment of more than 32 MB gets it when it is closed. Returns whether there were any.
--
-- Locks the row that every append locks first, because an index waits for them otherwise: appends wait some 10 ms.
CREATE FUNCTION eventsql.index_open_segments_v1(p_stream_id int, p_partition int) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    bytes_max CONSTANT bigint := 33554432;
    missing   text[];
    name      text;
BEGIN
    missing := ARRAY(
        SELECT g.table_name
        FROM eventsql.segment g
        CROSS JOIN LATERAL to_regclass(format('eventsql.%I', g.table_name)) AS t (id)
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'open' AND t.id IS NOT NULL
          AND NOT EXISTS (
              SELECT FROM pg_index i
              WHERE i.indrelid = t.id AND i.indexprs IS NOT NULL AND i.indpred IS NOT NULL)
          AND pg_relation_size(t.id) <= bytes_max
        ORDER BY g.first_offset);
    IF missing = '{}' THEN
        RETURN false;
    END IF;
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition
    FOR UPDATE;
    FOREACH name IN ARRAY missing LOOP
        PERFORM eventsql.add_key_index_v1(name);
    END LOOP;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false; -- repeated in the next round
END $$;

-- Begins the pass over the next partition that needs one. A process that finds none does nothing until the next round.
CREATE FUNCTION eventsql.begin_compaction_v1(p_pause interval) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    visited_max CONSTANT int := 100;
    ends_at     timestamptz := clock_timestamp() + interval '100 ms';
    pass        record;
    visit       record;
    due         record;
BEGIN
    SELECT * INTO pass FROM eventsql.compaction_pass;
    IF NOT pass.is_running THEN
        IF p_pause > '0' AND clock_timestamp() < pass.round_began_at + p_pause THEN
            RETURN 'waiting';
        END IF;
        pass.stream_id := 0;
        pass.partition := -1;
        UPDATE eventsql.compaction_pass SET is_running = true, round_began_at = clock_timestamp();
    END IF;
    FOR visited IN 1 .. visited_max LOOP
        SELECT p.stream_id, p.partition INTO visit
        FROM eventsql.stream_partition p
        JOIN eventsql.stream s USING (stream_id)
        WHERE (p.stream_id, p.partition) > (pass.stream_id, pass.partition) AND s.compaction
        ORDER BY p.stream_id, p.partition LIMIT 1;
        IF NOT FOUND THEN
            PERFORM eventsql.drop_replaced_tables_v1();
            UPDATE eventsql.compaction_pass SET stream_id = 0, partition = -1, is_running = false;
            RETURN CASE
                WHEN EXISTS (SELECT FROM eventsql.stream s WHERE s.compaction)
                    OR EXISTS (SELECT FROM eventsql.replaced_table)
                THEN 'finished' ELSE 'idle' END;
        END IF;
        pass.stream_id := visit.stream_id;
        pass.partition := visit.partition;
        PERFORM eventsql.close_segments_v1(visit.stream_id, visit.partition);
        IF eventsql.index_open_segments_v1(visit.stream_id, visit.partition) THEN
            RETURN 'more'; -- a step of its own
        END IF;
        SELECT * INTO due FROM eventsql.compaction_due_v1(visit.stream_id, visit.partition);
        IF due.phase IS NOT NULL THEN
            UPDATE eventsql.compaction_pass p
            SET stream_id = visit.stream_id, partition = visit.partition, phase = due.phase,
                dirty_offset = due.dirty_offset, end_offset = due.end_offset,
                next_offset = CASE due.phase WHEN 'collect' THEN due.dirty_offset ELSE 0 END,
                oldest_tombstone_at = NULL, pass_began_at = clock_timestamp();
            RETURN 'more';
        END IF;
        EXIT WHEN clock_timestamp() > ends_at;
    END LOOP;
    UPDATE eventsql.compaction_pass SET stream_id = pass.stream_id, partition = pass.partition;
    RETURN 'more';
END $$;

-- Collects the keys of the next events of the dirty segments: up to 5,000, or those of 50 ms.
--
-- Indexes: the primary keys of the segment's table and of compaction_key. Inserts and updates rows of the latter alone.
CREATE FUNCTION eventsql.collect_keys_v1() RETURNS void
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
BEGIN
    SELECT * INTO pass FROM eventsql.compaction_pass;
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
        EXECUTE format(
            'SELECT count(*) AS events, max(event_offset) + 1 AS end_offset FROM ('
            '  SELECT event_offset FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2) AS e',
            segment.table_name)
        INTO chunk USING pass.next_offset, events_left;
        chunk_end := CASE WHEN chunk.events < events_left THEN segment.end_offset ELSE chunk.end_offset END;
        EXECUTE format(
            'INSERT INTO eventsql.compaction_key AS k (key_hash, last_offset)'
            ' SELECT eventsql.key_hash_v1(n.key), n.last_offset'
            ' FROM (SELECT e.key, max(e.event_offset) AS last_offset FROM eventsql.%I e'
            '       WHERE e.event_offset >= $1 AND e.event_offset < $2 AND e.key IS NOT NULL GROUP BY e.key) AS n'
            ' ON CONFLICT (key_hash) DO UPDATE SET last_offset = excluded.last_offset', segment.table_name)
        USING pass.next_offset, chunk_end;
        events_left := events_left - chunk.events;
        pass.next_offset := chunk_end;
    END LOOP;
    UPDATE eventsql.compaction_pass
    SET next_offset = CASE WHEN pass.next_offset < pass.end_offset THEN pass.next_offset ELSE 0 END,
        phase = CASE WHEN pass.next_offset < pass.end_offset THEN 'collect' ELSE 'remove' END;
END $$;

-- Empties the table of keys, at the end of a pass. Does not wait for a transaction that has read it, such as a dump: the rows
-- are deleted then, and the next pass returns their space.
CREATE FUNCTION eventsql.forget_keys_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    LOCK TABLE eventsql.compaction_key IN ACCESS EXCLUSIVE MODE NOWAIT;
    TRUNCATE eventsql.compaction_key;
EXCEPTION WHEN lock_not_available THEN
    DELETE FROM eventsql.compaction_key;
END $$;

-- Returns the offset below which every consumer of a stream has handled the events of a partition: all consumers, and those
-- that are not abandoned. NULL: there is none.
CREATE FUNCTION eventsql.handled_offsets_v1(
    p_stream_id int, p_partition int, p_abandoned_after interval, OUT by_all bigint, OUT by_active bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
    SELECT min(coalesce(o.next_offset, 0)),
           min(coalesce(o.next_offset, 0)) FILTER (
               WHERE coalesce(o.committed_at, c.created_at) > clock_timestamp() - p_abandoned_after)
    FROM eventsql.consumer c
    LEFT JOIN LATERAL (
        SELECT n.next_offset, n.committed_at FROM eventsql.consumer_offset n
        WHERE n.consumer_id = c.consumer_id AND n.partition = p_partition
        ORDER BY n.commit_number DESC LIMIT 1) o ON true
    WHERE c.stream_id = p_stream_id
$$;

-- Removes the superseded ones of the next events of all closed segments below the pass's end: up to 5,000 are visited, or
-- those of 50 ms. Of what the last pass has left, also the tombstones that may go: they are the only events of their keys
-- there. In the same transaction raises compacted_through of the segments, below which offsets may be missing.
--
-- Indexes: the primary keys of the segment's table and of compaction_key. Locks the deleted rows, then the segment's.
CREATE FUNCTION eventsql.remove_superseded_v1() RETURNS void
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
    SELECT p.*, s.tombstone_delay, s.abandoned_after INTO STRICT pass
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
        EXECUTE format(
            'SELECT count(*) AS events, max(event_offset) + 1 AS end_offset, bool_or(is_tombstone) AS has_tombstones FROM ('
            '  SELECT event_offset, value IS NULL AND erased_at IS NULL AND key IS NOT NULL AS is_tombstone'
            '  FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2) AS e', segment.table_name)
        INTO chunk USING pass.next_offset, events_left;
        chunk_end := CASE WHEN chunk.events < events_left THEN segment.end_offset ELSE chunk.end_offset END;

        removed := 0;
        tombstones := 0;
        IF pass.end_offset > pass.dirty_offset AND chunk.events > 0 THEN -- otherwise no keys were collected
            EXECUTE format(
                'DELETE FROM eventsql.%I e USING eventsql.compaction_key k'
                ' WHERE e.event_offset >= $1 AND e.event_offset < $2 AND e.key IS NOT NULL'
                '   AND k.key_hash = eventsql.key_hash_v1(e.key) AND k.last_offset > e.event_offset', segment.table_name)
            USING pass.next_offset, chunk_end;
            GET DIAGNOSTICS removed = ROW_COUNT;
        END IF;
        IF chunk.has_tombstones THEN
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

-- Records that space of the partition of the pass could not be returned, and when to try again.
CREATE FUNCTION eventsql.return_space_later_v1(p_delay interval) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE eventsql.compaction_progress c
    SET retry_at = least(c.retry_at, clock_timestamp() + p_delay)
    FROM eventsql.compaction_pass p
    WHERE c.stream_id = p.stream_id AND c.partition = p.partition
$$;

-- Rewrites the next sparse segment of the pass's partition, which returns its space. Locks it exclusively while what is left
-- of it is copied, and waits for that for 100 ms at most. CLUSTER keeps what older snapshots see; as long as there is one of
-- before the removal, the space is not returned, and the segment is rewritten again later.
CREATE FUNCTION eventsql.rewrite_segment_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pass         record;
    segment      record;
    bytes_before bigint;
    bytes_after  bigint;
BEGIN
    SELECT * INTO pass FROM eventsql.compaction_pass;
    IF pass.next_offset = 0 THEN
        UPDATE eventsql.compaction_progress c SET retry_at = NULL
        WHERE c.stream_id = pass.stream_id AND c.partition = pass.partition;
    END IF;
    SELECT g.first_offset, g.end_offset, to_regclass(format('eventsql.%I', g.table_name)) AS id INTO segment
    FROM eventsql.segment g
    WHERE g.stream_id = pass.stream_id AND g.partition = pass.partition AND g.first_offset >= pass.next_offset
      AND g.end_offset <= pass.end_offset AND eventsql.is_sparse_v1(g)
    ORDER BY g.first_offset LIMIT 1;
    IF NOT FOUND THEN
        UPDATE eventsql.compaction_pass SET phase = 'merge', next_offset = 0;
        RETURN;
    END IF;
    UPDATE eventsql.compaction_pass SET next_offset = segment.end_offset;
    IF segment.id IS NULL THEN -- dropped by hand
        RETURN;
    END IF;
    BEGIN
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', segment.id);
        bytes_before := pg_total_relation_size(segment.id);
        EXECUTE format('CLUSTER %s USING %I', segment.id, (
            SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = segment.id AND i.indisprimary));
        bytes_after := pg_total_relation_size(segment.id);
        IF bytes_after <= bytes_before / 4 * 3 THEN
            UPDATE eventsql.segment g SET bytes = bytes_after, rewritten_events = g.removed_events
            WHERE g.stream_id = pass.stream_id AND g.partition = pass.partition
              AND g.first_offset = segment.first_offset;
        ELSE -- an old snapshot still sees the removed events
            PERFORM eventsql.return_space_later_v1('10 minutes');
        END IF;
        UPDATE eventsql.compaction_pass
        SET returned_bytes = returned_bytes + greatest(0, bytes_before - bytes_after);
    EXCEPTION WHEN lock_not_available THEN -- a transaction has read it
        PERFORM eventsql.return_space_later_v1('1 minute');
    END;
END $$;

-- Rejects a change of a replaced table, such as of an erasure that has found its name before: it is repeated with the new one.
CREATE FUNCTION eventsql.reject_change_v1() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'the events of table % are in another one now', TG_TABLE_NAME USING ERRCODE = '40001';
END $$;

-- Copies what is left of neighbouring segments into a new one, which takes their place.
--
-- While the events are copied, only changes of them wait. Then locks the row that every append locks first, so that no append
-- uses the partition's table, and that table without waiting: a transaction that has read it by SQL makes this fail at once.
-- The former tables stay for a minute, because a statement may have found their names already.
--
-- Errors: 55P03 a lock was not available; 40001 the segments have changed.
CREATE FUNCTION eventsql.replace_segments_v1(
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
    SELECT s.table_name, s.compaction INTO STRICT stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
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
        '  vacuum_truncate = false, toast.vacuum_truncate = false)',
        name, of_partition, p_partition, p_first_offset, p_end_offset);
    EXECUTE format('ALTER TABLE eventsql.%I ALTER COLUMN value SET STATISTICS 0', name); -- as in create_segment_v1
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

-- Merges small segments of the pass's partition, or ends the pass if there are none.
CREATE FUNCTION eventsql.merge_segments_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pass  record;
    merge record;
BEGIN
    SELECT * INTO pass FROM eventsql.compaction_pass;
    SELECT * INTO merge FROM eventsql.segments_to_merge_v1(pass.stream_id, pass.partition);
    IF merge.first_offset IS NOT NULL THEN
        BEGIN
            PERFORM eventsql.replace_segments_v1(
                pass.stream_id, pass.partition, merge.first_offset, merge.end_offset);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected OR serialization_failure OR undefined_table THEN
            PERFORM eventsql.return_space_later_v1('1 minute'); -- a transaction has read the stream by SQL
        END;
    END IF;
    PERFORM eventsql.drop_replaced_tables_v1();
    UPDATE eventsql.compaction_pass SET phase = 'idle', pass_began_at = NULL;
END $$;

-- Drops tables that were replaced more than a minute ago, up to twenty that no transaction uses.
CREATE FUNCTION eventsql.drop_replaced_tables_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept    CONSTANT interval := '1 minute';
    dropped CONSTANT int := 20;
    replaced record;
BEGIN
    FOR replaced IN
        SELECT r.table_name FROM eventsql.replaced_table r
        WHERE r.replaced_at < clock_timestamp() - kept
        ORDER BY random() LIMIT dropped
    LOOP
        BEGIN
            IF to_regclass(format('eventsql.%I', replaced.table_name)) IS NOT NULL THEN
                EXECUTE format('LOCK TABLE ONLY eventsql.%I IN ACCESS EXCLUSIVE MODE NOWAIT', replaced.table_name);
                EXECUTE format('DROP TABLE eventsql.%I', replaced.table_name);
            END IF;
            DELETE FROM eventsql.replaced_table r WHERE r.table_name = replaced.table_name;
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE; -- a transaction reads it
        END;
    END LOOP;
END $$;

-- Takes the next step of compaction, of up to 5,000 events, or of one segment. Decides itself what to compact. Returns
-- 'more' if the round over all partitions continues: the caller repeats the call in another transaction. 'finished' at the
-- end of the round, 'idle' if it is known then that no stream is compacted; 'waiting' if nothing was done, because another
-- process takes a step, the next round is not due, or a lock was not available within 100 ms.
--
-- p_pause: how long after the begin of one round the next one begins. 0: at once.
--
-- Errors: ES003 the transaction is not READ COMMITTED.
CREATE FUNCTION eventsql.compact_v1(p_pause interval DEFAULT '0') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    pass record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'compaction requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    PERFORM FROM eventsql.compaction_pass FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'waiting';
    END IF;
    -- A new statement sees what was committed before the lock was granted. A step that is lost in a crash is taken again.
    SELECT * INTO pass FROM eventsql.compaction_pass;
    PERFORM set_config('synchronous_commit', 'off', true);
    BEGIN
        IF pass.phase = 'idle' THEN
            RETURN eventsql.begin_compaction_v1(p_pause);
        ELSIF NOT EXISTS (
            SELECT FROM eventsql.stream s
            JOIN eventsql.stream_partition p USING (stream_id)
            WHERE s.stream_id = pass.stream_id AND p.partition = pass.partition AND s.compaction)
        THEN -- the stream was dropped, or is not compacted any more
            PERFORM eventsql.forget_keys_v1();
            UPDATE eventsql.compaction_pass SET phase = 'idle', pass_began_at = NULL;
        ELSIF pass.phase = 'collect' THEN
            PERFORM eventsql.collect_keys_v1();
        ELSIF pass.phase = 'remove' THEN
            PERFORM eventsql.remove_superseded_v1();
        ELSIF pass.phase = 'rewrite' THEN
            PERFORM eventsql.rewrite_segment_v1();
        ELSE
            PERFORM eventsql.merge_segments_v1();
        END IF;
        RETURN 'more';
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        RETURN 'waiting';
    END;
END $$;

-- What compaction has removed, and what it has still to do.
CREATE VIEW eventsql.compaction_status AS
SELECT p.removed_events, p.removed_tombstones, p.returned_bytes,
       d.dirty_segments, d.dirty_bytes,                -- closed since the last pass of their partitions
       (SELECT count(*) FROM eventsql.replaced_table) AS replaced_tables,
       p.phase, p.pass_began_at, p.round_began_at
FROM eventsql.compaction_pass p
CROSS JOIN LATERAL (
    SELECT count(*) AS dirty_segments, coalesce(sum(g.bytes), 0)::bigint AS dirty_bytes
    FROM eventsql.stream s
    JOIN eventsql.segment g USING (stream_id)
    LEFT JOIN eventsql.compaction_progress c USING (stream_id, partition)
    WHERE s.compaction AND g.state = 'closed' AND g.end_offset > coalesce(c.clean_offset, 0)) d;

-- Who may run retention may also compact as the streams say.
DO $$
DECLARE
    grantee text;
BEGIN
    REVOKE ALL ON FUNCTION eventsql.compact_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.expire_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.compact_v1 TO %s', grantee);
        EXECUTE format('GRANT SELECT ON eventsql.compaction_status TO %s', grantee);
    END LOOP;
END $$;
