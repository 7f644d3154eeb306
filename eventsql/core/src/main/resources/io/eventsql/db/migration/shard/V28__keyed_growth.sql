-- EventSQL: growth of streams that count the events of keys, and of compacted ones (decision 40).
--
-- The home of a key is the partition that it had before the stream grew for the first time. The rows of key_version and
-- key_reservation keep the home of their key as partition, so none of them moves with the key.

INSERT INTO eventsql.schema_version (version, description) VALUES (28, 'keyed growth');

SET LOCAL lock_timeout = '3s';

-- Returns the slot of a key in a map of p_slots slots, as the publishers compute it (KeyHash): FNV-1a over its UTF-8 bytes,
-- followed by the finalizer of MurmurHash3, of which the high 32 bits are taken.
CREATE FUNCTION eventsql.key_slot_v1(p_key text, p_slots int) RETURNS int
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    bytes   bytea := convert_to(p_key, 'UTF8');
    high    bigint := 3421674724; -- both halves of the offset basis cbf29ce484222325
    low     bigint := 2216829733;
    product bigint;
    hash    numeric;
BEGIN
    FOR i IN 0 .. octet_length(bytes) - 1 LOOP -- the prime is 2^40 + 435
        low := low # get_byte(bytes, i);
        product := low * 435;
        high := (high * 435 + (product >> 32) + (low << 8)) & 4294967295;
        low := product & 4294967295;
    END LOOP;
    hash := (high::numeric * 4294967296 + (low # (high >> 1))) * 18397679294719823053; -- ff51afd7ed558ccd
    high := div(hash % 18446744073709551616, 4294967296);
    low := hash % 4294967296;
    hash := (high::numeric * 4294967296 + (low # (high >> 1))) * 14181476777654086739; -- c4ceb9fe1a85ec53
    RETURN div(hash % 18446744073709551616, 4294967296) % p_slots;
END $$;

-- The home of the keys of each partition that was added by a growth. NULL: they have several, and a key's slot says which.
CREATE TABLE eventsql.partition_home (
    stream_id int NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition int NOT NULL,
    home      int,
    slots     int NOT NULL,                            -- of every map of the stream
    PRIMARY KEY (stream_id, partition)
);

-- Records the homes of the keys of new partitions with the map that first uses them.
CREATE FUNCTION eventsql.record_partition_homes_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    first_count int := (SELECT s.partitions FROM eventsql.stream s WHERE s.stream_id = NEW.stream_id);
BEGIN
    INSERT INTO eventsql.partition_home (stream_id, partition, home, slots)
    SELECT NEW.stream_id, u.partition,
           CASE WHEN min((u.slot - 1) % first_count) = max((u.slot - 1) % first_count)
                THEN min((u.slot - 1) % first_count) END,
           cardinality(NEW.slots)
    FROM unnest(NEW.slots) WITH ORDINALITY AS u (partition, slot)
    WHERE u.partition >= first_count
    GROUP BY u.partition
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER record_partition_homes AFTER INSERT ON eventsql.stream_map
    FOR EACH ROW EXECUTE FUNCTION eventsql.record_partition_homes_v1();

-- Returns the homes of keys by the partitions that the keys have now. Called under the locks of these partitions, which a growth
-- needs, too.
--
-- Index: the primary key of partition_home. Takes no lock.
CREATE FUNCTION eventsql.key_homes_v1(p_stream_id int, p_partitions int[], p_keys text[]) RETURNS int[]
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    first_count int;
BEGIN
    IF NOT EXISTS (SELECT FROM eventsql.partition_home h WHERE h.stream_id = p_stream_id) THEN
        RETURN p_partitions;
    END IF;
    SELECT s.partitions INTO STRICT first_count FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    RETURN ARRAY(
        SELECT CASE WHEN h.partition IS NULL THEN u.partition
                    WHEN h.home IS NOT NULL THEN h.home
                    ELSE eventsql.key_slot_v1(u.key, h.slots) % first_count END
        FROM unnest(p_partitions, p_keys) WITH ORDINALITY AS u (partition, key, n)
        LEFT JOIN eventsql.partition_home h ON h.stream_id = p_stream_id AND h.partition = u.partition
        ORDER BY u.n);
END $$;

-- The functions that count the events of keys are as before, but name the row of a key by its home.
DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('count_key_events_v1', 'raise_key_versions_v1(id, partitions, keys, counts)',
             'raise_key_versions_v1(id, eventsql.key_homes_v1(id, partitions, keys), keys, counts)'),
            ('count_key_blocks_v1', 'raise_key_versions_v1(id, partitions, keys, counts)',
             'raise_key_versions_v1(id, eventsql.key_homes_v1(id, partitions, keys), keys, counts)'),
            ('append_expected_v1', '    versions        bigint[] :=',
             '    homes           int[] := ''{}'';' || chr(10) || '    versions        bigint[] :='),
            ('append_expected_v1', 'p_partitions[p_key_groups[i]]', 'homes[i]'),
            ('append_expected_v1', '    FOR i IN 1 .. cardinality(p_key_names) LOOP',
             '    FOR i IN 1 .. cardinality(p_key_names) LOOP' || chr(10)
             || '        homes[i] := (eventsql.key_homes_v1(p_stream_ids[p_key_groups[i]],' || chr(10)
             || '            ARRAY[p_partitions[p_key_groups[i]]], ARRAY[p_key_names[i]]))[1];')
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        changed := replace(definition, change.former, change.latter);
        IF changed = definition THEN
            RAISE EXCEPTION '% is not the one of an earlier version', change.function;
        END IF;
        EXECUTE changed;
    END LOOP;
END $$;

-- Returns the partitions that the keys of a slot have had, the current one last: keys move to partitions with higher numbers
-- only.
--
-- Index: the primary key of stream_map. Takes no lock.
CREATE FUNCTION eventsql.partitions_of_slot_v1(p_stream_id int, p_slot int) RETURNS int[]
LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
    SELECT array_agg(p.partition ORDER BY p.partition)
    FROM (
        SELECT p_slot % s.partitions AS partition FROM eventsql.stream s WHERE s.stream_id = p_stream_id
        UNION
        SELECT m.slots[p_slot + 1] FROM eventsql.stream_map m WHERE m.stream_id = p_stream_id
    ) AS p
$$;

-- Returns the events of a key from a position on, in order, at most p_events_max: first those of the partition that it had first.
-- And with each row the key's version. One row without an offset: there are none. One snapshot: what the version counts is in the
-- stream, also if the key has moved.
--
-- p_slot: the slot of the key, whose number no growth changes.
--
-- Indexes, errors: those of read_key_v1. Takes no row lock.
CREATE FUNCTION eventsql.read_key_v2(
    p_stream text, p_slot int, p_key text, p_from_partition int, p_from bigint, p_events_max int)
RETURNS TABLE (
    version bigint, partition int, event_offset bigint, value bytea, headers text, published_at timestamptz, is_erased boolean)
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
    left_over int := p_events_max;
    rows      int;
BEGIN
    SELECT s.stream_id, s.partitions INTO stream FROM eventsql.stream s WHERE s.name = p_stream;
    key_now := eventsql.key_version_v1(p_stream, p_slot % stream.partitions, p_key);
    FOREACH own IN ARRAY eventsql.partitions_of_slot_v1(stream.stream_id, p_slot) LOOP
        CONTINUE WHEN own < p_from_partition;
        RETURN QUERY
        SELECT key_now, own, r.event_offset, r.value, r.headers, r.published_at, r.is_erased
        FROM eventsql.read_key_v1(
            p_stream, own, p_key, CASE WHEN own = p_from_partition THEN p_from ELSE 0 END, left_over) r
        WHERE r.event_offset IS NOT NULL;
        GET DIAGNOSTICS rows = ROW_COUNT;
        left_over := left_over - rows;
        EXIT WHEN left_over = 0;
    END LOOP;
    IF left_over = p_events_max THEN
        version := key_now;
        RETURN NEXT;
    END IF;
END $$;

REVOKE ALL ON FUNCTION eventsql.record_partition_homes_v1 FROM PUBLIC;

-- Compaction: an event of a giver goes when a later one of its key is in a receiver. A pass over a receiver removes the events of
-- the keys that it has collected from its givers, too.

ALTER TABLE eventsql.compaction_pass
    DROP CONSTRAINT compaction_pass_phase_known,
    ADD CONSTRAINT compaction_pass_phase_known
        CHECK (phase IN ('idle', 'collect', 'givers', 'remove', 'rewrite', 'merge')),
    ADD COLUMN giver int NOT NULL DEFAULT -1;          -- whose offset next_offset is, in the phase givers

-- How far the givers of a partition are compacted by its keys: below compacted_through no event is left of a key that has one
-- below the partition's clean_offset.
CREATE TABLE eventsql.compaction_giver (
    stream_id         int    NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition         int    NOT NULL,
    giver             int    NOT NULL,
    compacted_through bigint NOT NULL,
    PRIMARY KEY (stream_id, partition, giver)
) WITH (fillfactor = 50, vacuum_truncate = false);

-- Returns the partitions that keys of a partition may have been in before, and the offset below which their events are there.
--
-- Index: the primary key of partition_barrier. Takes no lock.
CREATE FUNCTION eventsql.former_partitions_v1(p_stream_id int, p_partition int)
RETURNS TABLE (giver int, end_offset bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
    WITH RECURSIVE barrier AS MATERIALIZED (
        SELECT b.partition, b.giver, b.end_offset
        FROM eventsql.partition_barrier b
        WHERE b.stream_id = p_stream_id AND b.end_offset < 9223372036854775807
    ), former AS (
        SELECT b.giver, b.end_offset FROM barrier b WHERE b.partition = p_partition
        UNION
        SELECT b.giver, b.end_offset FROM former f JOIN barrier b ON b.partition = f.giver
    )
    SELECT f.giver, max(f.end_offset) FROM former f GROUP BY f.giver
$$;

-- Has the next passes over a partition collect all of its keys again, if more segments of its givers have ended: each giver has
-- one at most that ends after the growth. Called while no pass is in progress.
--
-- Indexes: the primary keys. Locks the rows that it changes.
CREATE FUNCTION eventsql.revisit_givers_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    changed int;
BEGIN
    INSERT INTO eventsql.compaction_giver AS known (stream_id, partition, giver, compacted_through)
    SELECT p_stream_id, p_partition, f.giver, least(f.end_offset, (
        SELECT min(g.first_offset) FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = f.giver AND g.state = 'open'))
    FROM eventsql.former_partitions_v1(p_stream_id, p_partition) f
    ON CONFLICT (stream_id, partition, giver) DO UPDATE
    SET compacted_through = excluded.compacted_through
    WHERE known.compacted_through < excluded.compacted_through;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed > 0 THEN
        UPDATE eventsql.compaction_progress c SET clean_offset = 0
        WHERE c.stream_id = p_stream_id AND c.partition = p_partition;
    END IF;
END $$;

-- Returns whether givers of a partition may have events that its keys supersede and that no pass could remove yet: as long as
-- they have, no tombstone of the partition may go.
CREATE FUNCTION eventsql.awaits_givers_v1(p_stream_id int, p_partition int) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
    SELECT EXISTS (
        SELECT FROM eventsql.former_partitions_v1(p_stream_id, p_partition) f
        JOIN eventsql.stream_partition p ON p.stream_id = p_stream_id AND p.partition = f.giver
        WHERE p.log_start < f.end_offset
          AND NOT EXISTS (
              SELECT FROM eventsql.compaction_giver g
              WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.giver = f.giver
                AND g.compacted_through >= f.end_offset))
$$;

-- Returns the size of what a pass over a partition visits in its givers.
CREATE FUNCTION eventsql.giver_bytes_v1(p_stream_id int, p_partition int) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
    SELECT coalesce(sum(s.bytes), 0)::bigint
    FROM eventsql.compaction_giver g
    JOIN eventsql.segment s ON s.stream_id = g.stream_id AND s.partition = g.giver
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition
      AND s.state = 'closed' AND s.first_offset < g.compacted_through
$$;

-- Removes the events of the collected keys from the blocks of a giver's segment that end in a range of offsets; returns how many.
--
-- Indexes: the primary keys of the segment's table and of compaction_key. Locks the rows that it changes.
CREATE FUNCTION eventsql.remove_moved_from_blocks_v1(p_segment text, p_from bigint, p_below bigint) RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    own     record;
    removed bigint := 0;
BEGIN
    FOR own IN EXECUTE format(
        'SELECT b.event_offset, c.*'
        ' FROM eventsql.%I AS b CROSS JOIN LATERAL ('
        '   SELECT array_agg(n ORDER BY n) FILTER (WHERE NOT has_moved) AS kept, count(*) FILTER (WHERE has_moved) AS moved'
        '   FROM ('
        '     SELECT u.n, u.key IS NOT NULL AND EXISTS ('
        '       SELECT FROM eventsql.compaction_key k WHERE k.key_hash = eventsql.key_hash_v1(u.key)) AS has_moved'
        '     FROM (SELECT e.n, e.key FROM eventsql.block_events_v1(b.block, b.events) AS e OFFSET 0) AS u OFFSET 0) AS judged'
        ' ) AS c WHERE b.event_offset >= $1 AND b.event_offset < $2 ORDER BY b.event_offset', p_segment)
        USING p_from, p_below
    LOOP
        IF own.moved > 0 THEN
            PERFORM eventsql.reduce_block_v1(p_segment, own.event_offset, own.kept);
            removed := removed + own.moved;
        END IF;
    END LOOP;
    RETURN removed;
END $$;

-- Removes the events of the collected keys from the next closed segments of the givers: up to 5,000 events are visited, or those
-- of 50 ms. In the same transaction raises compacted_through of the segments, as remove_superseded_v1 does.
--
-- Indexes: the primary keys of the segment's table, of compaction_key and of compaction_giver. Locks the deleted rows, then the
-- segment's.
CREATE FUNCTION eventsql.remove_moved_v1() RETURNS void
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
    is_finished boolean := false;
    pass        record;
    visit       record;
    segment     record;
    chunk       record;
    chunk_end   bigint;
    removed     bigint;
BEGIN
    SELECT p.*, s.storage INTO STRICT pass
    FROM eventsql.compaction_pass p JOIN eventsql.stream s USING (stream_id);
    WHILE events_left > 0 AND clock_timestamp() < ends_at LOOP
        SELECT g.giver, g.compacted_through INTO visit
        FROM eventsql.compaction_giver g
        WHERE g.stream_id = pass.stream_id AND g.partition = pass.partition
          AND (g.giver > pass.giver OR (g.giver = pass.giver AND g.compacted_through > pass.next_offset))
        ORDER BY g.giver LIMIT 1;
        IF NOT FOUND THEN
            is_finished := true;
            EXIT;
        ELSIF visit.giver > pass.giver THEN
            pass.giver := visit.giver;
            pass.next_offset := 0;
        END IF;
        SELECT * INTO segment
        FROM eventsql.closed_segment_from_v1(pass.stream_id, pass.giver, pass.next_offset) g
        WHERE g.first_offset < visit.compacted_through;
        IF NOT FOUND THEN
            pass.next_offset := visit.compacted_through;
            CONTINUE;
        END IF;
        pass.next_offset := greatest(pass.next_offset, segment.first_offset);
        IF to_regclass(format('eventsql.%I', segment.table_name)) IS NULL THEN -- dropped by hand
            pass.next_offset := segment.end_offset;
            CONTINUE;
        END IF;
        chunk := eventsql.compaction_chunk_v1(pass.storage, segment.table_name, pass.next_offset, events_left);
        chunk_end := CASE WHEN chunk.events < events_left THEN segment.end_offset ELSE chunk.end_offset END;
        IF pass.storage = 'blocks' THEN
            removed := eventsql.remove_moved_from_blocks_v1(segment.table_name, pass.next_offset, chunk_end);
        ELSE
            EXECUTE format(
                'DELETE FROM eventsql.%I e USING eventsql.compaction_key k'
                ' WHERE e.event_offset >= $1 AND e.event_offset < $2 AND e.key IS NOT NULL'
                '   AND k.key_hash = eventsql.key_hash_v1(e.key)', segment.table_name)
            USING pass.next_offset, chunk_end;
            GET DIAGNOSTICS removed = ROW_COUNT;
        END IF;
        IF removed > 0 THEN
            UPDATE eventsql.segment g
            SET compacted_through = greatest(g.compacted_through, chunk_end), removed_events = g.removed_events + removed
            WHERE g.stream_id = pass.stream_id AND g.partition = pass.giver AND g.first_offset = segment.first_offset;
            UPDATE eventsql.compaction_progress c SET retry_at = least(c.retry_at, clock_timestamp()) -- to return the space
            WHERE c.stream_id = pass.stream_id AND c.partition = pass.giver;
        END IF;
        pass.removed_events := pass.removed_events + removed;
        events_left := events_left - chunk.events;
        pass.next_offset := chunk_end;
    END LOOP;
    UPDATE eventsql.compaction_pass p
    SET phase = CASE WHEN is_finished THEN 'remove' ELSE 'givers' END,
        next_offset = CASE WHEN is_finished THEN 0 ELSE pass.next_offset END,
        giver = CASE WHEN is_finished THEN -1 ELSE pass.giver END,
        removed_events = pass.removed_events;
END $$;

-- The functions of compaction are as before, with the phase between collecting and removing.
DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('begin_compaction_v1', 'PERFORM eventsql.close_segments_v1(visit.stream_id, visit.partition);',
             'PERFORM eventsql.close_segments_v1(visit.stream_id, visit.partition);' || chr(10)
             || '        PERFORM eventsql.revisit_givers_v1(visit.stream_id, visit.partition);'),
            ('compaction_due_v1', '>= clean_bytes OR',
             '>= clean_bytes + eventsql.giver_bytes_v1(p_stream_id, p_partition) OR'),
            ('collect_keys_v1', 'THEN ''collect'' ELSE ''remove'' END', 'THEN ''collect'' ELSE ''givers'' END'),
            ('compact_v1', 'ELSIF pass.phase = ''remove'' THEN',
             'ELSIF pass.phase = ''givers'' THEN' || chr(10)
             || '            PERFORM eventsql.remove_moved_v1();' || chr(10)
             || '        ELSIF pass.phase = ''remove'' THEN'),
            ('remove_superseded_v1', 'FROM eventsql.handled_offsets_v1(pass.stream_id, pass.partition, pass.abandoned_after);',
             'FROM eventsql.handled_offsets_v1(pass.stream_id, pass.partition, pass.abandoned_after);' || chr(10)
             || '    IF eventsql.awaits_givers_v1(pass.stream_id, pass.partition) THEN' || chr(10)
             || '        handled.by_active := 0; -- no tombstone may go' || chr(10)
             || '    END IF;')
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        changed := replace(definition, change.former, change.latter);
        IF changed = definition THEN
            RAISE EXCEPTION '% is not the one of an earlier version', change.function;
        END IF;
        EXECUTE changed;
    END LOOP;
END $$;

-- Looks for the last event of a key: as find_latest_v1 in the partition that it has now, then in those that it had before. One
-- snapshot sees the map and the events.
--
-- p_slot: the slot of the key. p_from_partition, p_from, p_below_partition, p_below: the positions to search; NULL: all of them.
-- head_partition, head: the first partition that was searched, and the offset of its next event. continue_partition,
-- continue_below: where to continue; NULL: the search is finished.
--
-- Indexes, errors: those of find_latest_v1. Takes no row lock.
CREATE FUNCTION eventsql.find_latest_v2(
    p_stream text, p_slot int, p_key text, p_from_partition int, p_from bigint, p_below_partition int, p_below bigint,
    p_segments_max int,
    OUT head_partition int, OUT head bigint, OUT continue_partition int, OUT continue_below bigint,
    OUT partition int, OUT event_offset bigint, OUT value bytea, OUT headers json,
    OUT published_at timestamptz, OUT erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    partitions int[] := (
        SELECT eventsql.partitions_of_slot_v1(s.stream_id, p_slot) FROM eventsql.stream s WHERE s.name = p_stream);
    own        int;
    search     record;
BEGIN
    IF partitions IS NULL THEN
        RAISE EXCEPTION 'stream % does not exist', p_stream USING ERRCODE = 'ES004';
    END IF;
    FOR n IN REVERSE cardinality(partitions) .. 1 LOOP
        own := partitions[n];
        CONTINUE WHEN own > p_below_partition;
        EXIT WHEN own < p_from_partition;
        search := eventsql.find_latest_v1(
            p_stream, own, p_key, CASE WHEN own = p_from_partition THEN p_from END,
            CASE WHEN own = p_below_partition THEN p_below END, p_segments_max);
        IF head IS NULL THEN
            head_partition := own;
            head := search.head;
        END IF;
        IF search.event_offset IS NOT NULL THEN
            partition := own;
            event_offset := search.event_offset;
            value := search.value;
            headers := search.headers;
            published_at := search.published_at;
            erased_at := search.erased_at;
            RETURN;
        ELSIF search.continue_below IS NOT NULL THEN
            continue_partition := own;
            continue_below := search.continue_below;
            RETURN;
        END IF;
    END LOOP;
END $$;

-- Returns the last event of a key of this shard, unless it is a tombstone: no row or one. Searches all segments of its partitions
-- in the worst case, and locks each of them until the end of the transaction (ACCESS SHARE).
--
-- Indexes, errors: those of find_latest_v1.
CREATE FUNCTION eventsql.latest_v2(p_stream text, p_key text)
RETURNS TABLE (
    partition int, event_offset bigint, value bytea, headers json, published_at timestamptz, erased_at timestamptz)
LANGUAGE sql STABLE
AS $$
    SELECT l.partition, l.event_offset, l.value, l.headers, l.published_at, l.erased_at
    FROM eventsql.stream s
    CROSS JOIN LATERAL eventsql.find_latest_v2(
        p_stream, eventsql.key_slot_v1(p_key, 4096 / s.partitions * s.partitions), p_key,  -- as many slots as a map has
        NULL, NULL, NULL, NULL, NULL) l
    WHERE s.name = p_stream AND l.event_offset IS NOT NULL AND (l.value IS NOT NULL OR l.erased_at IS NOT NULL)
$$;

-- As in version 13. In the view of a stream that has grown, or is being prepared for it, the partition with the highest number
-- has the last event of a key.
CREATE OR REPLACE FUNCTION eventsql.apply_latest_view_v1(p_stream text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stream     record;
    events     text;
    view       text;
    value_type regtype;
    has_grown  boolean;
BEGIN
    SELECT s.stream_id, s.table_name, s.compaction, s.json INTO STRICT stream FROM eventsql.stream s WHERE s.name = p_stream;
    events := format('eventsql.%I', stream.table_name);
    view := format('eventsql.%I', stream.table_name || '__latest');
    has_grown := EXISTS (SELECT FROM eventsql.stream_map m WHERE m.stream_id = stream.stream_id)
        OR EXISTS (SELECT FROM eventsql.partition_barrier b WHERE b.stream_id = stream.stream_id);
    SELECT a.atttypid INTO value_type
    FROM pg_attribute a WHERE a.attrelid = to_regclass(view) AND a.attname = 'value';
    IF NOT stream.compaction OR (value_type = 'jsonb'::regtype) IS DISTINCT FROM stream.json THEN
        EXECUTE format('DROP VIEW IF EXISTS %s', view);
    ELSIF NOT has_grown OR pg_get_viewdef(to_regclass(view)) LIKE '%last_position%' THEN
        RETURN;
    END IF;
    IF NOT stream.compaction THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE OR REPLACE VIEW %s AS'
        ' SELECT e.partition, l.key, e.event_offset, %s AS value, e.headers, e.published_at'
        ' FROM (%s) AS l JOIN %s AS e ON %s'
        ' WHERE e.value IS NOT NULL',
        view, CASE WHEN stream.json THEN 'eventsql.json_or_null(e.value)' ELSE 'e.value' END,
        format(CASE WHEN has_grown
            THEN 'SELECT key, max(ARRAY[partition, event_offset]) AS last_position FROM %s WHERE key IS NOT NULL GROUP BY key'
            ELSE 'SELECT partition, key, max(event_offset) AS event_offset FROM %s WHERE key IS NOT NULL GROUP BY partition, key'
            END, events),
        events,
        CASE WHEN has_grown
            THEN 'e.partition = l.last_position[1] AND e.event_offset = l.last_position[2]'
            ELSE 'e.partition = l.partition AND e.event_offset = l.event_offset' END);
    PERFORM eventsql.copy_grants_v1(events::regclass, view::regclass);
END $$;

-- Adds closed partitions to a stream, as add_partitions_v1 does, and gives the view of the current state the form that a stream
-- has which has grown. Locks the view exclusively, and waits for its readers for 500 ms at most.
CREATE FUNCTION eventsql.prepare_growth_v1(p_stream_id int, p_partitions int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $$
BEGIN
    PERFORM eventsql.add_partitions_v1(p_stream_id, p_partitions, true);
    PERFORM eventsql.apply_latest_view_v1(s.name) FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
END $$;

REVOKE ALL ON FUNCTION eventsql.prepare_growth_v1 FROM PUBLIC;

-- As before, but no statement joins the keys with the table: such a plan, made while the table was empty and kept by the session,
-- reads all keys of the stream for each append once there are many. Here each key is one probe of the primary key.
CREATE OR REPLACE FUNCTION eventsql.raise_key_versions_v1(
    p_stream_id int, p_partitions int[], p_keys text[], p_counts int[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    raised   record;
    inserted int;
BEGIN
    WITH stored AS MATERIALIZED (
        SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key, unnest(p_counts) AS events
    ), free AS MATERIALIZED (
        SELECT s.partition, s.key, s.events
        FROM stored s
        CROSS JOIN LATERAL (
            SELECT v.version
            FROM eventsql.key_version v
            WHERE v.stream_id = p_stream_id AND v.partition = s.partition AND v.key = s.key
            FOR UPDATE SKIP LOCKED) AS locked
    ), counted AS (
        -- Each row exists and is locked, so this is an update that finds it by its key.
        INSERT INTO eventsql.key_version AS v (stream_id, partition, key, version)
        SELECT p_stream_id, f.partition, f.key, f.events FROM free f
        ON CONFLICT (stream_id, partition, key) DO UPDATE SET version = v.version + excluded.version
        RETURNING v.reserved_version
    )
    SELECT count(*)::int AS keys, count(c.reserved_version) AS reserved INTO raised FROM counted c;
    IF raised.keys < cardinality(p_keys) THEN
        -- The first events of keys. A transaction may insert the same row; then its events are counted, and come first.
        INSERT INTO eventsql.key_version (stream_id, partition, key, version)
        SELECT p_stream_id, s.partition, s.key, s.events
        FROM (SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key, unnest(p_counts) AS events) s
        WHERE NOT EXISTS ( -- or a row that a transaction has changed would be waited for
            SELECT FROM eventsql.key_version v
            WHERE v.stream_id = p_stream_id AND v.partition = s.partition AND v.key = s.key
            OFFSET 0) -- which keeps it a probe for each key
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        IF raised.keys + inserted < cardinality(p_keys) THEN
            PERFORM eventsql.reject_reserved_key_v1(p_stream_id);
        END IF;
    END IF;
    IF raised.reserved > 0 THEN
        FOR i IN 1 .. cardinality(p_keys) LOOP
            IF eventsql.reserved_events_v1(p_stream_id, p_partitions[i], p_keys[i]) > 0 THEN
                PERFORM eventsql.reject_reserved_key_v1(p_stream_id);
            END IF;
            UPDATE eventsql.key_version v
            SET reserved_version = NULL
            WHERE v.stream_id = p_stream_id AND v.partition = p_partitions[i] AND v.key = p_keys[i]
              AND v.reserved_version IS NOT NULL;
            DELETE FROM eventsql.key_reservation r -- of events that were erased in the outbox
            WHERE r.stream_id = p_stream_id AND r.partition = p_partitions[i] AND r.key = p_keys[i];
        END LOOP;
    END IF;
END $$;
