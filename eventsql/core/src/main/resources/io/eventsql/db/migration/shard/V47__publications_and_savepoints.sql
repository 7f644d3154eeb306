-- EventSQL: all tables can be part of a publication; consumers are moved and streams are closed in transactions with savepoints, too; a
-- file is not blocked by the history of the tool that applies it; and segments end and expire in time though the clock was ahead.

INSERT INTO eventsql.schema_version (version, description) VALUES (47, 'publications and savepoints');

SET LOCAL lock_timeout = '3s';

-- A publication identifies rows by the primary key, and does not contain generated columns: PostgreSQL 18 rejects updates and deletions
-- then, and earlier subscribers do. Rows keep their hashes; a trigger sets those of new ones, which no statement names.
CREATE FUNCTION eventsql.set_key_hash_v1() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.key_hash := eventsql.key_hash_v1(NEW.key);
    RETURN NEW;
END $$;
ALTER TABLE eventsql.parked_key ALTER COLUMN key_hash DROP EXPRESSION;
CREATE TRIGGER set_key_hash BEFORE INSERT OR UPDATE OF key ON eventsql.parked_key
    FOR EACH ROW EXECUTE FUNCTION eventsql.set_key_hash_v1();
ALTER TABLE eventsql.parked_key ENABLE ALWAYS TRIGGER set_key_hash; -- also for rows of a publisher with an earlier version

-- The transactions that have counted a seek and created a stream, NULL before this version. Not xmin, which is the id of a
-- subtransaction after a savepoint.
ALTER TABLE eventsql.consumer_seek ADD COLUMN counted_in xid8;
ALTER TABLE eventsql.stream ADD COLUMN created_in xid8, ALTER COLUMN created_in SET DEFAULT pg_current_xact_id();

-- As in version 29, but records the transaction.
CREATE OR REPLACE FUNCTION eventsql.count_seek_v1(p_consumer_id int, p_seeks bigint, p_cluster_version int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER -- to lock the row of shard
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    own record;
BEGIN
    SELECT s.shard_number, s.map_version INTO STRICT own FROM eventsql.shard s FOR SHARE;
    PERFORM FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    IF own.map_version > p_cluster_version OR eventsql.seeks_v1(p_consumer_id, own.shard_number) <> p_seeks THEN
        RETURN false;
    END IF;
    INSERT INTO eventsql.consumer_seek AS k (consumer_id, shard, seeks, counted_in)
    VALUES (p_consumer_id, own.shard_number, p_seeks + 1, pg_current_xact_id())
    ON CONFLICT (consumer_id, shard) DO UPDATE SET seeks = excluded.seeks, counted_in = excluded.counted_in;
    RETURN true;
END $$;

-- Returns when the first event of a segment was published, or an earlier time if that is not known: p_published_at, unless the clock was
-- ahead. All events since then have a time in the future, so this is the time at which the segment before ended, or without one that at
-- which the age of the stream begins.
--
-- p_offset: that of the event, or of the segment.
--
-- Indexes: the primary keys of segment and stream. Takes no row lock.
CREATE FUNCTION eventsql.published_since_v1(p_stream_id int, p_partition int, p_offset bigint, p_published_at timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
BEGIN
    IF p_published_at > clock_timestamp() + interval '1 minute' THEN
        RETURN coalesce(
            (SELECT CASE g.state WHEN 'open' THEN clock_timestamp() ELSE g.last_published_at END -- it has just ended
             FROM eventsql.segment g
             WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.end_offset <= p_offset
             ORDER BY g.first_offset DESC LIMIT 1),
            clock_timestamp() - (SELECT s.retention FROM eventsql.stream s WHERE s.stream_id = p_stream_id),
            p_published_at);
    END IF;
    RETURN p_published_at;
END $$;

DO $$
DECLARE
    change     record;
    definition text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('seek_v2', 'k.xmin = pg_current_xact_id()::xid', 'k.counted_in = pg_current_xact_id()'),
            -- Ids count from the beginning in a new cluster of databases, so a stream that was restored there may have that of this
            -- transaction, but not its time.
            ('close_new_stream_v1',
             's.xmin = pg_current_xact_id()::xid',
             's.created_in = pg_current_xact_id() AND s.created_at = now()'),
            -- Only what this transaction has created, and so has locked already: other tables in the schema, such as the history of a
            -- tool, may be in use by the session that waits for this one. The next file of the outbox makes this change, too.
            ('give_to_owner_v1',
             'AND pg_has_role(current_user, c.relowner, ''USAGE'')',
             'AND pg_has_role(current_user, c.relowner, ''USAGE'')' || chr(10)
             || '          AND EXISTS (' || chr(10)
             || '              SELECT FROM pg_locks l' || chr(10)
             || '              WHERE l.pid = pg_backend_pid() AND l.relation = c.oid AND l.mode = ''AccessExclusiveLock'')'),
            ('segment_to_end_v1',
             'LIMIT 1'', table_name) INTO since;',
             'LIMIT 1'', table_name) INTO since;' || chr(10)
             || '    since := eventsql.published_since_v1(p_stream_id, p_partition, first_offset, since);'),
            ('next_segment_size_v1',
             '    IF since IS NOT NULL AND head > since_offset THEN',
             '    since := eventsql.published_since_v1(p_stream_id, p_partition, since_offset, since);' || chr(10)
             || '    IF since IS NOT NULL AND head > since_offset THEN'),
            ('begin_segment_end_v1',
             'INTO since USING segment.head - places;',
             'INTO since USING segment.head - places;' || chr(10)
             || '        since := eventsql.published_since_v1(p_stream_id, p_partition, segment.head - places, since);'),
            -- Also of segments that were closed while the clock was ahead.
            ('close_segments_v1',
             '    END LOOP;' || chr(10),
             '    END LOOP;' || chr(10)
             || '    UPDATE eventsql.segment g SET last_published_at = clock_timestamp()' || chr(10)
             || '    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = ''closed''' || chr(10)
             || '      AND g.last_published_at > clock_timestamp() + interval ''1 minute'';' || chr(10))
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        IF strpos(definition, change.former) = 0 THEN
            RAISE EXCEPTION '% is not the one of an earlier version: %', change.function, change.former;
        END IF;
        EXECUTE replace(definition, change.former, change.latter);
    END LOOP;
    PERFORM eventsql.give_to_owner_v1();
END $$;
