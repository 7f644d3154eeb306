-- EventSQL: nothing unusual stops maintenance for long: an outage in the middle of a pass, a clock that is set back, a transaction
-- that reads a stream, or an error in one partition (decision 56). And the first event of a key in an open transaction does not stop
-- the others of its partition.

INSERT INTO eventsql.schema_version (version, description) VALUES (38, 'steady maintenance');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- Rows are only added: frozen while the table grows, as segments are (decision 55).
ALTER TABLE eventsql.key_segment SET (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_freeze_min_age = 0);

-- Its rows of key_version and key_segment are deleted in several transactions. NULL: they are gone.
ALTER TABLE eventsql.deleted_stream ADD COLUMN stream_id int;

-- As in version 29, but with the right to lock the row of the shard, so that roles that create streams need none.
ALTER FUNCTION eventsql.slots_of_new_stream_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;

-- As in version 9, but in random order: partitions that cannot end now do not keep the others from their turn.
CREATE OR REPLACE FUNCTION eventsql.segments_to_end_v1(p_max int) RETURNS TABLE (stream_id int, partition int)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
    SELECT p.stream_id, p.partition
    FROM eventsql.stream_partition p
    JOIN eventsql.stream s USING (stream_id)
    CROSS JOIN LATERAL eventsql.segment_to_end_v1(p.stream_id, p.partition) g
    WHERE num_nonnulls(s.retention, s.retention_bytes, s.retention_events) > 0
    ORDER BY random() LIMIT p_max
$$;

-- Prepares a large segment to end early: adds the constraint that proves its new end, without checking it yet. Returns
-- whether there is one to be checked.
--
-- The new end leaves room for two of the largest batches, for the events of a minute, and for half as many events as the segment
-- has: a transaction that reads the stream may delay the end for long, and while it does, nothing can be appended beyond it. A
-- segment that is more than half full ends by itself, unless its last events took longer than it is to grow: then it ends with a
-- sixteenth of the room that is left. An append beyond the new end, before the segment has ended, fails as without a segment does;
-- ensure_segments_v1 then removes the constraint.
CREATE OR REPLACE FUNCTION eventsql.begin_segment_end_v1(p_stream_id int, p_partition int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    batches CONSTANT bigint := 200000;
    segment record;
    room    bigint;
    places  bigint;
    grown   interval;
    since   timestamptz;
BEGIN
    SELECT * INTO segment FROM eventsql.segment_to_end_v1(p_stream_id, p_partition);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    places := segment.end_offset - segment.head;
    room := greatest(segment.events / 2, batches + ceil(
        segment.events * 60 / greatest(extract(epoch FROM clock_timestamp() - segment.since), 1))::bigint);
    IF places > segment.events THEN
        room := least(room, places / 2);
    ELSE
        SELECT s.retention / 8 INTO grown FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
        EXECUTE format('SELECT published_at FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT 1', segment.table_name)
            INTO since USING segment.head - places;
        IF grown IS NULL OR since IS NULL OR since > clock_timestamp() - grown THEN
            RETURN false;
        END IF;
        room := least(room, places / 16);
    END IF;
    room := greatest(room, 1);
    IF room >= places THEN
        RETURN false;
    END IF;
    EXECUTE format('ALTER TABLE eventsql.%I DROP CONSTRAINT IF EXISTS eventsql_end', segment.table_name);
    EXECUTE format(
        'ALTER TABLE eventsql.%I ADD CONSTRAINT eventsql_end'
        ' CHECK (partition = %s AND event_offset >= %s AND event_offset < %s) NOT VALID',
        segment.table_name, p_partition, segment.first_offset, segment.head + room);
    RETURN true;
END $$;

-- Forgets the versions of a stream's keys with the stream; those of a stream that begin_delete_stream_v1 deletes follow with its
-- tables, because there may be too many for one transaction.
CREATE OR REPLACE FUNCTION eventsql.forget_key_versions_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF OLD.key_tracking <> 'off' THEN
        DELETE FROM eventsql.key_reservation r WHERE r.stream_id = OLD.stream_id;
        IF coalesce(current_setting('eventsql.keys_follow', true), '') <> 'on' THEN
            DELETE FROM eventsql.key_version v WHERE v.stream_id = OLD.stream_id;
            DELETE FROM eventsql.key_segment k WHERE k.stream_id = OLD.stream_id;
        END IF;
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            -- The pause after a pass that an outage has interrupted is not twenty times as long as that; and if the clock was set
            -- back, nothing waits until it has caught up.
            ('expire_v1',
             'AND clock_timestamp() < pass.began_at + greatest(p_pause, 20 * (pass.ended_at - pass.began_at))',
             'AND clock_timestamp() BETWEEN pass.began_at' || chr(10)
             || '                AND pass.began_at + greatest(p_pause, least(20 * (pass.ended_at - pass.began_at), interval ''10 minutes''))'),
            -- An error in one partition does not stop the others.
            ('expire_v1',
             'CONTINUE; -- an append waits for replicas, or an outbox''s relay: repeated in the next pass' || chr(10),
             'CONTINUE; -- an append waits for replicas, or an outbox''s relay: repeated in the next pass' || chr(10)
             || '            WHEN query_canceled OR OTHERS THEN' || chr(10)
             || '                RAISE WARNING ''nothing expires in partition % of stream %: % (%)'',' || chr(10)
             || '                    visit.partition, visit.stream_id, SQLERRM, SQLSTATE USING ERRCODE = ''ES031'';' || chr(10)
             || '                CONTINUE;' || chr(10)),
            ('expire_v1',
             '        truncated := eventsql.truncate_expired_v1(visit.stream_id, visit.partition, truncated_max);' || chr(10),
             '        BEGIN' || chr(10)
             || '            truncated := eventsql.truncate_expired_v1(visit.stream_id, visit.partition, truncated_max);' || chr(10)
             || '        EXCEPTION WHEN query_canceled OR OTHERS THEN' || chr(10)
             || '            RAISE WARNING ''expired segments of partition % of stream % are not truncated: % (%)'',' || chr(10)
             || '                visit.partition, visit.stream_id, SQLERRM, SQLSTATE USING ERRCODE = ''ES031'';' || chr(10)
             || '            truncated := 0;' || chr(10)
             || '        END;' || chr(10)),
            ('begin_compaction_v1',
             'clock_timestamp() < pass.round_began_at + p_pause',
             'clock_timestamp() BETWEEN pass.round_began_at AND pass.round_began_at + p_pause'),
            ('begin_compaction_v1',
             '        PERFORM eventsql.close_segments_v1(visit.stream_id, visit.partition);' || chr(10),
             '        BEGIN' || chr(10)
             || '        PERFORM eventsql.close_segments_v1(visit.stream_id, visit.partition);' || chr(10)),
            ('begin_compaction_v1',
             '        SELECT * INTO due FROM eventsql.compaction_due_v1(visit.stream_id, visit.partition);' || chr(10),
             '        SELECT * INTO due FROM eventsql.compaction_due_v1(visit.stream_id, visit.partition);' || chr(10)
             || '        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN' || chr(10)
             || '            RAISE;' || chr(10)
             || '        WHEN query_canceled OR OTHERS THEN' || chr(10)
             || '            RAISE WARNING ''partition % of stream % is not compacted: % (%)'',' || chr(10)
             || '                visit.partition, visit.stream_id, SQLERRM, SQLSTATE USING ERRCODE = ''ES031'';' || chr(10)
             || '            CONTINUE;' || chr(10)
             || '        END;' || chr(10)),
            ('compact_v1',
             '        RETURN ''waiting'';' || chr(10) || '    END;' || chr(10),
             '        RETURN ''waiting'';' || chr(10)
             || '    WHEN query_canceled OR OTHERS THEN' || chr(10)
             || '        IF pass.phase = ''idle'' THEN' || chr(10)
             || '            RAISE;' || chr(10)
             || '        END IF;' || chr(10)
             || '        RAISE WARNING ''partition % of stream % is not compacted: % (%)'',' || chr(10)
             || '            pass.partition, pass.stream_id, SQLERRM, SQLSTATE USING ERRCODE = ''ES031'';' || chr(10)
             || '        PERFORM eventsql.forget_keys_v1();' || chr(10)
             || '        UPDATE eventsql.compaction_pass SET phase = ''idle'', pass_began_at = NULL;' || chr(10)
             || '        RETURN ''more'';' || chr(10)
             || '    END;' || chr(10)),
            -- A segment that is no smaller after it was rewritten, though no snapshot sees more than what is left, is not rewritten
            -- again: its events are of different sizes.
            ('rewrite_segment_v1',
             '    bytes_after  bigint;' || chr(10),
             '    bytes_after  bigint;' || chr(10) || '    live_rows    bigint;' || chr(10)),
            ('rewrite_segment_v1',
             '        IF bytes_after <= bytes_before / 4 * 3 THEN' || chr(10),
             '        EXECUTE format(''SELECT count(*) FROM %s'', segment.id) INTO live_rows;' || chr(10)
             || '        IF bytes_after <= bytes_before / 4 * 3' || chr(10)
             || '            OR live_rows >= ( -- an index counts the rows of older snapshots, too' || chr(10)
             || '                SELECT c.reltuples FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid' || chr(10)
             || '                WHERE i.indrelid = segment.id AND i.indisprimary)' || chr(10)
             || '        THEN' || chr(10)),
            -- A consumer that is being registered neither sees the new partitions nor is seen here. Its row refers to the stream's.
            ('add_partitions_v1',
             '    PERFORM FROM eventsql.consumer c WHERE c.stream_id = p_stream_id ORDER BY c.consumer_id FOR NO KEY UPDATE;' || chr(10),
             '    PERFORM FROM eventsql.stream s WHERE s.stream_id = p_stream_id FOR UPDATE;' || chr(10)
             || '    PERFORM FROM eventsql.consumer c WHERE c.stream_id = p_stream_id ORDER BY c.consumer_id FOR NO KEY UPDATE;' || chr(10)),
            ('begin_delete_stream_v1',
             '    DELETE FROM eventsql.stream s WHERE s.stream_id = stream.stream_id;' || chr(10)
             || '    INSERT INTO eventsql.deleted_stream (name, table_name) VALUES (p_name, stream.table_name);' || chr(10),
             '    DELETE FROM eventsql.consumer_offset o USING eventsql.consumer c' || chr(10)
             || '    WHERE c.stream_id = stream.stream_id AND o.consumer_id = c.consumer_id;' || chr(10)
             || '    PERFORM set_config(''eventsql.keys_follow'', ''on'', true);' || chr(10)
             || '    DELETE FROM eventsql.stream s WHERE s.stream_id = stream.stream_id;' || chr(10)
             || '    PERFORM set_config(''eventsql.keys_follow'', ''off'', true);' || chr(10)
             || '    INSERT INTO eventsql.deleted_stream (name, table_name, stream_id)' || chr(10)
             || '    VALUES (p_name, stream.table_name, stream.stream_id);' || chr(10)),
            -- The first event of a key waits only briefly for a transaction that publishes the first one, too: all appends to the
            -- partitions wait for that. Then it fails as that of a key which has events does, and only the calls of the key wait.
            ('raise_key_versions_v1',
             '    inserted int;' || chr(10),
             '    inserted int;' || chr(10) || '    timeout  text := current_setting(''lock_timeout'');' || chr(10)),
            ('raise_key_versions_v1',
             '        INSERT INTO eventsql.key_version (stream_id, partition, key, version)' || chr(10),
             '        BEGIN' || chr(10)
             || '        PERFORM set_config(''lock_timeout'', ''20ms'', true);' || chr(10)
             || '        INSERT INTO eventsql.key_version (stream_id, partition, key, version)' || chr(10)),
            ('raise_key_versions_v1',
             '        GET DIAGNOSTICS inserted = ROW_COUNT;' || chr(10),
             '        GET DIAGNOSTICS inserted = ROW_COUNT;' || chr(10)
             || '        PERFORM set_config(''lock_timeout'', timeout, true);' || chr(10)
             || '        EXCEPTION WHEN lock_not_available THEN' || chr(10)
             || '            PERFORM eventsql.reject_reserved_key_v1(p_stream_id);' || chr(10)
             || '        END;' || chr(10)),
            -- The relay appends what waits in the outbox in its order: an event that was not counted when it was published, such as a
            -- row that was inserted with SQL, does not wait for a counted one behind it.
            ('raise_key_versions_v1',
             '            IF eventsql.reserved_events_v1(p_stream_id, p_partitions[i], p_keys[i]) > 0 THEN' || chr(10),
             '            IF eventsql.reserved_events_v1(p_stream_id, p_partitions[i], p_keys[i]) > 0 THEN' || chr(10)
             || '                CONTINUE WHEN coalesce(current_setting(''eventsql.relayed'', true), '''') = ''on'';' || chr(10)),
            ('drop_deleted_stream_v1',
             '    stream_table text;' || chr(10),
             '    keys_max     CONSTANT int := 200000; -- some seconds' || chr(10)
             || '    deleted_id   int;' || chr(10)
             || '    stream_table text;' || chr(10)),
            ('drop_deleted_stream_v1',
             '    SELECT d.table_name INTO stream_table FROM',
             '    SELECT d.table_name, d.stream_id INTO stream_table, deleted_id FROM'),
            ('drop_deleted_stream_v1',
             '    -- Segments, also those that are detached, then the tables of the partitions.' || chr(10),
             '    DELETE FROM eventsql.key_version v WHERE v.ctid = ANY (ARRAY(' || chr(10)
             || '        SELECT k.ctid FROM eventsql.key_version k WHERE k.stream_id = deleted_id LIMIT keys_max));' || chr(10)
             || '    IF FOUND THEN' || chr(10)
             || '        RETURN true;' || chr(10)
             || '    END IF;' || chr(10)
             || '    DELETE FROM eventsql.key_segment s WHERE s.ctid = ANY (ARRAY(' || chr(10)
             || '        SELECT k.ctid FROM eventsql.key_segment k WHERE k.stream_id = deleted_id LIMIT keys_max));' || chr(10)
             || '    IF FOUND THEN' || chr(10)
             || '        RETURN true;' || chr(10)
             || '    END IF;' || chr(10)
             || '    -- Segments, also those that are detached, then the tables of the partitions.' || chr(10))
        ) AS c (function, former, latter)
    LOOP
        IF change.function IS DISTINCT FROM changed THEN -- all changes of one function are made at once
            IF changed IS NOT NULL THEN
                EXECUTE definition;
            END IF;
            changed := change.function;
            definition := pg_get_functiondef(('eventsql.' || changed)::regproc);
        END IF;
        IF strpos(definition, change.former) = 0 THEN
            RAISE EXCEPTION '% is not the one of an earlier version: %', changed, change.former;
        END IF;
        definition := replace(definition, change.former, change.latter);
    END LOOP;
    EXECUTE definition;
END $$;
