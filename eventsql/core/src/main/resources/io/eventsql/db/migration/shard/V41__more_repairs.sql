-- EventSQL: copies of failed events are consumed on shards that keys have left, too; segments expire though the clock was ahead; what
-- is scheduled again next to an attempt that has not ended is stored once; a stream with an index of keys is deleted with any number of
-- segments; an erasure misses nothing in blocks that are compacted at the same time, in headers of parked events, and next to a deleted
-- dead-letter stream; reading a range passes over a segment that is missing, and reading a key over segments that have expired.

INSERT INTO eventsql.schema_version (version, description) VALUES (41, 'more repairs');

SET LOCAL lock_timeout = '3s';

-- Opens a partition to which this transaction has appended a copy of a failed event. It is closed if the shard had no slots when the
-- stream was created, or if it was added for keys that have not come. A move that has prepared it opens it itself.
--
-- Indexes: the primary keys, producer_batch_head. Locks the row of the barrier; the append has locked the partition against moves and growth.
CREATE FUNCTION eventsql.open_partition_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    DELETE FROM eventsql.partition_barrier b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition AND b.end_offset = 9223372036854775807
      AND EXISTS (
          SELECT FROM eventsql.producer_batch h
          WHERE h.stream_id = p_stream_id AND h.partition = p_partition AND h.next_offset > 0)
      AND NOT EXISTS (
          SELECT FROM eventsql.moved_partition m WHERE m.stream_id = p_stream_id AND m.partition = p_partition)
$$;
REVOKE ALL ON FUNCTION eventsql.open_partition_v1 FROM PUBLIC;

-- As in version 39, but partitions with events are opened in any case: a move that was cancelled had prepared them, or a process of a
-- former release has appended to them. And a stream is closed by any of its partitions, because the first one may be open.
CREATE OR REPLACE FUNCTION eventsql.open_closed_streams_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    never CONSTANT bigint := 9223372036854775807;
BEGIN
    PERFORM FROM eventsql.stream_partition p
    WHERE p.map_version < 0 OR p.stream_id IN (SELECT b.stream_id FROM eventsql.partition_barrier b WHERE b.end_offset = never)
    ORDER BY p.stream_id, p.partition FOR UPDATE;
    PERFORM eventsql.open_partition_v1(b.stream_id, b.partition)
    FROM eventsql.partition_barrier b
    WHERE b.end_offset = never;
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.shard_number <> ALL (s.slot_map))
        OR EXISTS (SELECT FROM eventsql.shard_move)
    THEN
        RETURN;
    END IF;
    -- Partitions above those over which a stream spreads its keys stay closed, for the next move.
    DELETE FROM eventsql.partition_barrier b
    WHERE b.end_offset = never
      AND b.partition < (SELECT m.partitions FROM eventsql.current_map_v1(b.stream_id) m);
    UPDATE eventsql.stream_partition p SET map_version = -p.map_version WHERE p.map_version < 0;
END $$;

-- Drops the function that reads keys in a segment.
CREATE FUNCTION eventsql.drop_key_reader_v1(p_table regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning -- most segments have none
AS $$
BEGIN
    EXECUTE format(
        'DROP FUNCTION IF EXISTS eventsql.%I (bigint, text, bigint, int)',
        (SELECT c.relname FROM pg_class c WHERE c.oid = p_table));
END $$;
REVOKE ALL ON FUNCTION eventsql.drop_key_reader_v1 FROM PUBLIC;

-- As in version 36, but only those of the rows that were deleted: each drop takes an entry in the lock table, and looking for others
-- reads all functions. A stream that is deleted drops them with its tables.
CREATE OR REPLACE FUNCTION eventsql.drop_key_readers_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    reader record;
BEGIN
    FOR reader IN
        SELECT p.oid::regprocedure AS name
        FROM deleted_rows d JOIN pg_proc p ON p.proname = d.table_name::name
        WHERE p.prorettype = 'eventsql.key_event[]'::regtype AND to_regclass(format('eventsql.%I', d.table_name)) IS NULL
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s', reader.name);
    END LOOP;
    RETURN NULL;
END $$;
DROP TRIGGER drop_key_readers ON eventsql.deleted_stream;

DO $$
DECLARE
    change     record;
    definition text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('close_segments_v1',
             'last_published_at = coalesce(published, clock_timestamp())',
             'last_published_at = least(coalesce(published, clock_timestamp()), clock_timestamp())'),
            -- An earlier attempt may wait for its commit, in a table for events that are due later than this one finds.
            ('schedule_v1',
             '        IF p_incarnation <> coalesce(',
             '        PERFORM pg_advisory_xact_lock(hashtextextended(''eventsql.schedule:'' || p_id, 0));' || chr(10)
             || '        IF p_incarnation <> coalesce('),
            ('drop_deleted_stream_v1',
             '            EXECUTE format(''DROP TABLE %s'', found_table.name);',
             '            PERFORM eventsql.drop_key_reader_v1(found_table.name);' || chr(10)
             || '            EXECUTE format(''DROP TABLE %s'', found_table.name);'),
            -- Also one that was erased before, without these headers.
            ('erase_step_v1',
             'AND e.key = own.key AND e.erased_at IS NULL AND (e.value IS NOT NULL OR e.error <> ''erased'')',
             'AND e.key = own.key AND (e.value IS NOT NULL OR e.error <> ''erased'''
             || ' OR eventsql.blank_headers_v1(e.headers, own.headers)::text IS DISTINCT FROM e.headers::text)'),
            -- A stream of dead letters may have been deleted, with its segments.
            ('erase_range_v1', 'SELECT s.storage INTO STRICT stored FROM', 'SELECT s.storage INTO stored FROM'),
            -- Compaction moves events to blocks that a statement which has begun does not see.
            ('erase_range_v1',
             '            erased := eventsql.erase_in_blocks_v1(segment',
             '            PERFORM FROM eventsql.compaction_pass WHERE EXISTS (' || chr(10)
             || '                SELECT FROM eventsql.stream s WHERE s.stream_id = p_stream_id AND s.compaction)' || chr(10)
             || '            FOR UPDATE;' || chr(10)
             || '            erased := eventsql.erase_in_blocks_v1(segment'),
            ('event_range_v1',
             '        EXIT WHEN segment.table_name IS NULL; -- expired since' || chr(10),
             '        IF segment.table_name IS NULL OR to_regclass(format(''eventsql.%I'', segment.table_name)) IS NULL THEN' || chr(10)
             || '            -- Expired since, or missing.' || chr(10)
             || '            next := coalesce(segment.end_offset, (' || chr(10)
             || '                SELECT min(g.first_offset) FROM eventsql.segment g' || chr(10)
             || '                WHERE g.stream_id = stream.stream_id AND g.partition = p_partition AND g.first_offset > next));' || chr(10)
             || '            EXIT WHEN next IS NULL;' || chr(10)
             || '            CONTINUE;' || chr(10)
             || '        END IF;' || chr(10)),
            -- Segments that were merged have the first offset of the first one.
            ('read_key_in_partition_v1',
             'AND k.key_hash = hash' || chr(10),
             'AND k.key_hash = hash' || chr(10)
             || '          AND k.first_offset >= coalesce((' || chr(10)
             || '              SELECT f.first_offset FROM eventsql.segment f' || chr(10)
             || '              WHERE f.stream_id = p_stream_id AND f.partition = p_partition AND f.first_offset <= begins_at' || chr(10)
             || '              ORDER BY f.first_offset DESC LIMIT 1), 0)' || chr(10))
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        IF strpos(definition, change.former) = 0 THEN
            RAISE EXCEPTION '% is not the one of an earlier version: %', change.function, change.former;
        END IF;
        EXECUTE replace(definition, change.former, change.latter);
    END LOOP;
END $$;

DO $$
DECLARE
    grants record;
BEGIN
    FOR grants IN -- an upgrade gives the new function to who consumes
        SELECT a.grantee::regrole AS role
        FROM pg_catalog.pg_proc f, aclexplode(f.proacl) a
        WHERE f.oid = 'eventsql.add_partitions_v1'::regproc AND a.privilege_type = 'EXECUTE' AND a.grantee <> 0
          AND a.grantee <> f.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.open_partition_v1 TO %s', grants.role);
    END LOOP;
    PERFORM FROM eventsql.shard s FOR UPDATE;
    PERFORM eventsql.open_closed_streams_v1();
END $$;

-- An event that was appended while the clock was ahead, and all after it until the clock has caught up, have a time in the future. A
-- segment is closed within seconds of its last event, so that is as old as its end at least.
UPDATE eventsql.segment g SET last_published_at = clock_timestamp()
WHERE g.last_published_at > clock_timestamp() + interval '1 minute';
