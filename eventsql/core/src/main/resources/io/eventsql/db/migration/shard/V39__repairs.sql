-- EventSQL: a table that cannot be dropped, such as one that a view of the application refers to, keeps neither the tables of other
-- segments nor compaction waiting (decision 56). And streams that were created during a move of keys open if that is cancelled.

INSERT INTO eventsql.schema_version (version, description) VALUES (39, 'repairs');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- Drops empty tables of expired segments: up to ten of one partition. Returns how many. The caller repeats the call in
-- another transaction until it returns 0. A table that cannot be dropped is left out, with a warning (ES031).
--
-- Dropping a table locks that of the partition. No append uses it, because the row that every append locks first is locked
-- before. p_wait: waits 100 ms at most for transactions that have read the stream by SQL; appends to the partition and such
-- statements then wait, too. Otherwise does not wait: as long as there is such a transaction, the tables stay.
CREATE OR REPLACE FUNCTION eventsql.drop_empty_segments_v1(p_wait boolean) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    dropped_max CONSTANT int := 10;
    of          record;
    segment     record;
    dropped     int := 0;
    failed      int := 0;
BEGIN
    DELETE FROM eventsql.segment g -- those dropped by hand
    WHERE g.state = 'empty' AND to_regclass(format('eventsql.%I', g.table_name)) IS NULL;
    FOR of IN
        SELECT g.stream_id, g.partition, format('eventsql.%I', s.table_name || '__p' || g.partition) AS parent
        FROM eventsql.segment g
        JOIN eventsql.stream s USING (stream_id)
        WHERE g.state = 'empty'
        GROUP BY g.stream_id, g.partition, s.table_name
        ORDER BY random() LIMIT CASE WHEN p_wait THEN 1 ELSE 100 END
    LOOP
        BEGIN
            PERFORM FROM eventsql.stream_partition p
            WHERE p.stream_id = of.stream_id AND p.partition = of.partition
            FOR UPDATE;
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE %s',
                of.parent, CASE WHEN p_wait THEN '' ELSE 'NOWAIT' END);
            FOR segment IN
                SELECT g.first_offset, g.table_name
                FROM eventsql.segment g
                WHERE g.stream_id = of.stream_id AND g.partition = of.partition AND g.state = 'empty'
                ORDER BY random() -- those that fail do not keep the others from their turn
            LOOP
                EXIT WHEN dropped + failed = dropped_max;
                BEGIN
                    EXECUTE format('DROP TABLE IF EXISTS eventsql.%I', segment.table_name);
                    DELETE FROM eventsql.segment g
                    WHERE g.stream_id = of.stream_id AND g.partition = of.partition AND g.first_offset = segment.first_offset;
                    dropped := dropped + 1;
                EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                    RAISE;
                WHEN query_canceled OR OTHERS THEN
                    failed := failed + 1;
                    RAISE WARNING 'table % of an expired segment is not dropped: % (%)',
                        segment.table_name, SQLERRM, SQLSTATE USING ERRCODE = 'ES031';
                END;
            END LOOP;
            IF dropped > 0 THEN
                RETURN dropped;
            END IF;
            RAISE lock_not_available; -- gives back the locks of this partition
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            dropped := 0;
            failed := 0; -- a transaction has read the stream, an append waits, or no table could be dropped
        END;
    END LOOP;
    RETURN 0;
END $$;

-- Drops tables that were replaced more than a minute ago, up to twenty that no transaction uses. A table that cannot be dropped
-- is left out, with a warning (ES031).
CREATE OR REPLACE FUNCTION eventsql.drop_replaced_tables_v1() RETURNS void
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
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            CONTINUE; -- a transaction reads it
        WHEN query_canceled OR OTHERS THEN
            RAISE WARNING 'table % of a compacted segment is not dropped: % (%)', replaced.table_name, SQLERRM, SQLSTATE
                USING ERRCODE = 'ES031';
            CONTINUE;
        END;
    END LOOP;
END $$;

-- Opens the streams that this shard has closed, though keys belong to it and none are being moved: those that were created while
-- it was to receive keys (close_new_stream_v1), after that move was cancelled. Called with the row of shard locked.
--
-- Indexes: the primary keys. Locks the rows of all partitions of these streams, in their order.
CREATE FUNCTION eventsql.open_closed_streams_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    never CONSTANT bigint := 9223372036854775807;
BEGIN
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.shard_number <> ALL (s.slot_map))
        OR EXISTS (SELECT FROM eventsql.shard_move)
    THEN
        RETURN;
    END IF;
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id IN (
        SELECT b.stream_id FROM eventsql.partition_barrier b WHERE b.partition = 0 AND b.end_offset = never
        UNION
        SELECT n.stream_id FROM eventsql.stream_partition n WHERE n.map_version < 0)
    ORDER BY p.stream_id, p.partition FOR UPDATE;
    -- Partitions above those over which a stream spreads its keys stay closed, for the next move.
    DELETE FROM eventsql.partition_barrier b
    WHERE b.end_offset = never
      AND b.stream_id IN (SELECT z.stream_id FROM eventsql.partition_barrier z WHERE z.partition = 0 AND z.end_offset = never)
      AND b.partition < (SELECT m.partitions FROM eventsql.current_map_v1(b.stream_id) m);
    UPDATE eventsql.stream_partition p SET map_version = -p.map_version WHERE p.map_version < 0;
END $$;
REVOKE ALL ON FUNCTION eventsql.open_closed_streams_v1 FROM PUBLIC;

DO $$
DECLARE
    change     record;
    definition text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('leave_move_v1',
             '    DELETE FROM eventsql.shard_move m WHERE m.map_version = p_version;' || chr(10),
             '    DELETE FROM eventsql.shard_move m WHERE m.map_version = p_version;' || chr(10)
             || '    PERFORM eventsql.open_closed_streams_v1();' || chr(10)),
            ('receive_slots_v1',
             'RAISE EXCEPTION ''a partition of the new map is in use already'' USING',
             'RAISE EXCEPTION ''a partition of the new map of stream % is in use already'','
             || ' (SELECT s.name FROM eventsql.stream s WHERE s.stream_id = p_stream_id) USING'),
            -- The stream was deleted: no batch is missing.
            ('append_sink_v1',
             '    -- A new statement has a new snapshot:',
             '    IF NOT FOUND THEN' || chr(10)
             || '        RAISE EXCEPTION ''partition % of stream % does not exist'', p_partition, p_stream USING ERRCODE = ''ES004'';' || chr(10)
             || '    END IF;' || chr(10)
             || '    -- A new statement has a new snapshot:')
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        IF strpos(definition, change.former) = 0 THEN
            RAISE EXCEPTION '% is not the one of an earlier version: %', change.function, change.former;
        END IF;
        EXECUTE replace(definition, change.former, change.latter);
    END LOOP;
    PERFORM FROM eventsql.shard s FOR UPDATE;
    PERFORM eventsql.open_closed_streams_v1(); -- of moves that were cancelled before this version
END $$;
