-- EventSQL: streams that stay on their shards while the keys of others move (decision 46).

INSERT INTO eventsql.schema_version (version, description) VALUES (31, 'stationary streams');

SET LOCAL lock_timeout = '3s';

-- The streams whose keys stay where they are, each with the slot map that was valid when it became one: by that map its keys belong
-- to shards from then on. By name, because another shard may have the stream before this one has it.
CREATE TABLE eventsql.stationary_stream (
    stream      text       PRIMARY KEY,
    map_version int        NOT NULL,                   -- of the slot map
    slot_map    smallint[] NOT NULL,
    is_fenced   boolean    NOT NULL DEFAULT false      -- who does not know that the stream stays is rejected: see fence_stream_v1
);

-- keeps_streams: decided by a process that knows such streams; others must not close slots.
ALTER TABLE eventsql.shard_move ADD COLUMN keeps_streams boolean NOT NULL DEFAULT false;

-- No keys have moved since the first of these streams was created. A spare shard gets them with the next move.
INSERT INTO eventsql.stationary_stream (stream, map_version, slot_map)
SELECT s.name, CASE WHEN h.former_slot_map IS NULL THEN h.map_version ELSE h.map_version - 1 END,
       coalesce(h.former_slot_map, h.slot_map)
FROM eventsql.stream s CROSS JOIN eventsql.shard h
WHERE (s.compaction OR s.key_tracking <> 'off') AND h.shard_number <> ALL (h.spare_shards);

-- Records that a stream stays from now on, because it is compacted or counts the events of its keys, unless it is known. Not on a
-- spare shard: the stream may have been created on the others before keys moved, and has no keys here. The next move gives the
-- shard what the others have recorded (keep_streams_v1).
--
-- Scans shard and shard_move; locks the row of shard in share mode. Indexes: the primary keys.
--
-- Errors: ES028 keys are being moved, or the keys of the stream have moved.
CREATE FUNCTION eventsql.record_stationary_stream_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.shard s FOR SHARE;
    IF EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = NEW.name) THEN
        RETURN NULL;
    ELSIF EXISTS (SELECT FROM eventsql.shard_move) THEN
        RAISE EXCEPTION 'keys are being moved between shards; complete or cancel that before stream % has compaction or counts the events of its keys',
            NEW.name USING ERRCODE = 'ES028';
    ELSIF EXISTS (SELECT FROM eventsql.stream_placement l WHERE l.stream_id = NEW.stream_id) THEN
        RAISE EXCEPTION 'keys of stream % have moved between shards, which compaction does not know', NEW.name
            USING ERRCODE = 'ES028';
    END IF;
    INSERT INTO eventsql.stationary_stream (stream, map_version, slot_map)
    SELECT NEW.name, s.map_version, s.slot_map FROM eventsql.shard s WHERE s.shard_number <> ALL (s.spare_shards);
    RETURN NULL;
END $$;
DROP TRIGGER reject_unmovable_stream_when_created ON eventsql.stream;
DROP TRIGGER reject_unmovable_stream_when_altered ON eventsql.stream;
DROP FUNCTION eventsql.reject_unmovable_stream_v1();
CREATE TRIGGER record_stationary_stream_when_created AFTER INSERT ON eventsql.stream
    FOR EACH ROW WHEN (NEW.compaction OR NEW.key_tracking <> 'off')
    EXECUTE FUNCTION eventsql.record_stationary_stream_v1();
CREATE TRIGGER record_stationary_stream_when_altered AFTER UPDATE ON eventsql.stream
    FOR EACH ROW WHEN (NEW.compaction AND NOT OLD.compaction OR NEW.key_tracking <> OLD.key_tracking)
    EXECUTE FUNCTION eventsql.record_stationary_stream_v1();

-- Forgets a stream that was deleted: one of that name that is created later begins with the slot map that is valid then.
--
-- Index: the primary key. Scans shard and shard_move; locks the row of shard in share mode.
--
-- Errors: ES028 keys are being moved, and other shards may be about to record the stream.
CREATE FUNCTION eventsql.forget_stationary_stream_v1(p_stream text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = p_stream) THEN
        RETURN;
    END IF;
    PERFORM FROM eventsql.shard s FOR SHARE;
    IF EXISTS (SELECT FROM eventsql.shard_move) THEN
        RAISE EXCEPTION 'keys are being moved between shards; complete or cancel that before stream % is deleted', p_stream
            USING ERRCODE = 'ES028';
    END IF;
    DELETE FROM eventsql.stationary_stream k WHERE k.stream = p_stream;
END $$;

CREATE FUNCTION eventsql.forget_deleted_stream_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM eventsql.forget_stationary_stream_v1(OLD.name);
    RETURN NULL;
END $$;
CREATE TRIGGER forget_deleted_stream AFTER DELETE ON eventsql.stream
    FOR EACH ROW EXECUTE FUNCTION eventsql.forget_deleted_stream_v1();

-- Rejects that keys of a stationary stream move: a process of the previous release prepares every stream.
CREATE FUNCTION eventsql.reject_placement_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT FROM eventsql.stationary_stream k JOIN eventsql.stream s ON s.name = k.stream
        WHERE s.stream_id = NEW.stream_id AND k.map_version < NEW.cluster_version)
    THEN
        RAISE EXCEPTION 'a stream stays on its shards, which this release of the library does not know'
            USING ERRCODE = 'ES028';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER reject_placement AFTER INSERT ON eventsql.stream_placement
    FOR EACH ROW EXECUTE FUNCTION eventsql.reject_placement_v1();

-- Raises the version of a stream's map, which stays the same. So an append is rejected unless its process has read the map since,
-- and with it that the stream stays. The greatest version is for processes of the previous release, which read the newest row of
-- stream_map, but not that the stream stays: it matches that of no append. A stream that was closed, because the shard had no slots
-- when it was created, is opened: no publisher routes by another slot map.
--
-- Indexes: the primary keys. Locks the rows of all partitions of the stream, in their order.
CREATE FUNCTION eventsql.fence_stream_v1(p_stream_id int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    former record;
    spread smallint[];
BEGIN
    PERFORM FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id ORDER BY p.partition FOR UPDATE;
    SELECT * INTO STRICT former FROM eventsql.current_map_v1(p_stream_id);
    spread := coalesce(former.slots, ARRAY(
        SELECT (n % former.partitions)::smallint
        FROM generate_series(0, 4096 / former.partitions * former.partitions - 1) AS n)); -- as many as a map has
    IF EXISTS (SELECT FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id) THEN
        INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
        SELECT p_stream_id, former.map_version + 1, max(l.cluster_version), former.partitions, former.slots, former.moved
        FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id;
    ELSE
        INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
        VALUES (p_stream_id, former.map_version + 1, former.partitions, spread);
    END IF;
    INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
    VALUES (p_stream_id, 2147483647, former.partitions, spread);
    DELETE FROM eventsql.partition_barrier b
    USING eventsql.stream s, eventsql.stream_partition p
    WHERE s.stream_id = p_stream_id AND b.stream_id = s.stream_id AND b.partition < s.partitions
      AND b.end_offset = 9223372036854775807
      AND p.stream_id = s.stream_id AND p.partition = b.partition AND p.map_version < 0;
    UPDATE eventsql.stream_partition p SET map_version = former.map_version + 1 WHERE p.stream_id = p_stream_id;
END $$;

-- As in version 29, without the row that is for processes of the previous release.
CREATE OR REPLACE FUNCTION eventsql.current_map_v1(
    p_stream_id int, OUT map_version int, OUT partitions int, OUT slots smallint[], OUT moved smallint[])
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
    SELECT abs(p.map_version), coalesce(l.partitions, m.partitions, s.partitions),
           CASE WHEN l.stream_id IS NULL THEN m.slots ELSE l.slots END, l.moved
    INTO STRICT map_version, partitions, slots, moved
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = 0
    LEFT JOIN LATERAL (
        SELECT g.stream_id, g.partitions, g.slots, g.moved FROM eventsql.stream_placement g
        WHERE g.stream_id = s.stream_id ORDER BY g.map_version DESC LIMIT 1) l ON true
    LEFT JOIN LATERAL (
        SELECT g.partitions, g.slots FROM eventsql.stream_map g
        WHERE g.stream_id = s.stream_id AND g.map_version < 2147483647 ORDER BY g.map_version DESC LIMIT 1) m ON true
    WHERE s.stream_id = p_stream_id;
END $$;

-- As in version 29: a process of the previous release cannot move keys while streams stay.
CREATE OR REPLACE FUNCTION eventsql.require_movable_v1() RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    reason text;
BEGIN
    SELECT format('stream %s stays on its shards, which this release of the library does not know', k.stream)
    INTO reason
    FROM eventsql.stationary_stream k ORDER BY k.stream LIMIT 1;
    IF reason IS NULL THEN
        SELECT format('sink %s of an engine writes by the slots as they are, which this release of the library does not know',
                      p.sink)
        INTO reason
        FROM eventsql.sink_producer p ORDER BY p.sink LIMIT 1;
    END IF;
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION '%', reason USING ERRCODE = 'ES028';
    END IF;
END $$;

-- As decide_move_v1, but streams that cannot move stay.
CREATE FUNCTION eventsql.decide_move_v2(p_version int, p_slot_map smallint[], p_is_receiver boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.is_plan) THEN
        RETURN;
    END IF;
    PERFORM eventsql.add_move_v2(
        p_version, p_slot_map, nextval('eventsql.shard_move_attempt'), true, p_is_receiver);
END $$;

-- As join_move_v1, but streams that cannot move stay.
CREATE FUNCTION eventsql.join_move_v2(p_version int, p_slot_map smallint[], p_attempt bigint, p_is_receiver boolean)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    known bigint;
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    SELECT m.attempt INTO known FROM eventsql.shard_move m WHERE m.map_version = p_version;
    IF known = p_attempt OR EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) THEN
        RETURN;
    ELSIF known > p_attempt THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
    PERFORM eventsql.add_move_v2(p_version, p_slot_map, p_attempt, false, p_is_receiver);
END $$;

-- As add_move_v1, but records the streams that sinks write to instead of rejecting the move: a batch in a checkpoint is for one
-- partition of one shard. The other streams that stay are recorded already. Until the end of the move no other stream gets there,
-- so keep_streams_v1 can give all shards what each of them has.
--
-- Indexes: producer_batch_of_producer, the primary keys.
CREATE FUNCTION eventsql.add_move_v2(
    p_version int, p_slot_map smallint[], p_attempt bigint, p_is_plan boolean, p_is_receiver boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own record;
BEGIN
    SELECT s.map_version, s.slot_map, s.removed_shards INTO STRICT own FROM eventsql.shard s;
    IF own.map_version <> p_version - 1 THEN
        RAISE EXCEPTION 'map version is %, not %', own.map_version, p_version - 1 USING ERRCODE = 'ES001';
    ELSIF own.removed_shards && p_slot_map THEN
        RAISE EXCEPTION 'one of the shards was removed' USING ERRCODE = 'ES029';
    END IF;
    PERFORM eventsql.leave_move_v1(p_version, p_attempt);
    INSERT INTO eventsql.stationary_stream (stream, map_version, slot_map)
    SELECT w.stream, own.map_version, own.slot_map FROM eventsql.sink_streams_v1() w
    ON CONFLICT DO NOTHING;
    INSERT INTO eventsql.shard_move (map_version, slot_map, attempt, is_plan, is_receiver, keeps_streams)
    VALUES (p_version, p_slot_map, p_attempt, p_is_plan, p_is_receiver, true);
END $$;

-- Returns the streams that sinks have written to on this shard.
--
-- Scans sink_producer. Index: producer_batch_of_producer. Takes no lock.
CREATE FUNCTION eventsql.sink_streams_v1() RETURNS TABLE (stream text)
LANGUAGE sql STABLE
AS $$
    SELECT DISTINCT s.name
    FROM eventsql.sink_producer p
    JOIN eventsql.producer_batch b ON b.producer_id = p.producer_id
    JOIN eventsql.stream s ON s.stream_id = b.stream_id
$$;

-- Gives this shard the streams of all shards that stay, and fences them. So before any slot is closed, a process that reads a
-- stream's map here reads that it stays, and one that has read it before is rejected. What a spare shard has recorded by a former
-- move gives way: the stream may have been created anew since by processes without its database. A stream whose deletion has begun
-- here is left out, because the deletion may be completed only after the move.
--
-- p_streams, p_versions, p_slot_maps: one element for each stream; a slot map as the text of an array.
--
-- Scans shard and shard_move. Indexes: the primary keys, stream_name_unique. Locks the row of shard, and those of all partitions of
-- the streams, in their order.
--
-- Errors: ES001 the move was cancelled; ES028 shards have different slot maps of a stream.
CREATE FUNCTION eventsql.keep_streams_v1(
    p_version int, p_attempt bigint, p_streams text[], p_versions int[], p_slot_maps text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' -- publishers wait for the rows that are locked already
AS $$
DECLARE
    other text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'moving keys requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) THEN
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.attempt = p_attempt) THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
    UPDATE eventsql.stationary_stream k SET map_version = g.map_version, slot_map = g.slot_map::smallint[]
    FROM unnest(p_streams, p_versions, p_slot_maps) AS g (stream, map_version, slot_map), eventsql.shard s
    WHERE k.stream = g.stream AND k.map_version <> g.map_version AND s.shard_number = ANY (s.spare_shards);
    SELECT min(k.stream) INTO other
    FROM unnest(p_streams, p_versions) AS g (stream, map_version)
    JOIN eventsql.stationary_stream k ON k.stream = g.stream
    WHERE k.map_version <> g.map_version;
    IF other IS NOT NULL THEN
        RAISE EXCEPTION 'stream % was not created on all shards with the same slots; delete it, and create it anew', other
            USING ERRCODE = 'ES028';
    END IF;
    INSERT INTO eventsql.stationary_stream (stream, map_version, slot_map)
    SELECT g.stream, g.map_version, g.slot_map::smallint[]
    FROM unnest(p_streams, p_versions, p_slot_maps) AS g (stream, map_version, slot_map)
    WHERE NOT EXISTS (SELECT FROM eventsql.deleted_stream d WHERE d.name = g.stream)
    ON CONFLICT DO NOTHING;
    PERFORM eventsql.fence_stream_v1(f.stream_id)
    FROM (
        SELECT s.stream_id
        FROM eventsql.stationary_stream k JOIN eventsql.stream s ON s.name = k.stream
        WHERE NOT k.is_fenced
        ORDER BY s.stream_id OFFSET 0) f;
    UPDATE eventsql.stationary_stream k SET is_fenced = true WHERE NOT k.is_fenced;
END $$;

-- As in version 29, but stationary streams need not be prepared.
CREATE OR REPLACE FUNCTION eventsql.freeze_receiver_v1(p_version int, p_attempt bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    unprepared text;
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) THEN
        RETURN;
    END IF;
    SELECT min(s.name) INTO unprepared
    FROM eventsql.stream s
    WHERE NOT EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = s.name)
      AND NOT EXISTS (
        SELECT FROM eventsql.stream_placement l WHERE l.stream_id = s.stream_id AND l.cluster_version = p_version);
    IF unprepared IS NOT NULL THEN
        RAISE EXCEPTION 'stream % is not prepared for map version %', unprepared, p_version USING ERRCODE = 'ES027';
    END IF;
    UPDATE eventsql.shard_move m SET is_frozen = true WHERE m.map_version = p_version AND m.attempt = p_attempt;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
END $$;

-- As in version 29, but not for a move that streams may have to be kept in: a process of the previous release has not done that.
CREATE OR REPLACE FUNCTION eventsql.begin_closing_v1(p_version int, p_attempt bigint) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
BEGIN
    IF EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.keeps_streams AND NOT m.is_closing) THEN
        RAISE EXCEPTION 'this move must be completed by the release of the library that began it' USING ERRCODE = 'ES028';
    END IF;
    PERFORM eventsql.begin_closing_v2(p_version, p_attempt);
END $$;

-- Excludes that the move is cancelled from now on: where it was decided, after keep_streams_v1 on all shards, and after all receivers
-- are frozen.
--
-- Index: the primary key. Locks the row.
--
-- Errors: ES001 the move is not this one.
CREATE FUNCTION eventsql.begin_closing_v2(p_version int, p_attempt bigint) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
BEGIN
    UPDATE eventsql.shard_move m SET is_closing = true
    WHERE m.map_version = p_version AND m.attempt = p_attempt AND m.is_plan;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
END $$;

-- As in version 29, but a stationary stream stays as it is: its slots are not closed.
CREATE OR REPLACE FUNCTION eventsql.close_slots_v1(p_version int, p_slot_map smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' -- publishers wait for the rows that are locked already
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    own     record;
    leaves  boolean;
    moving  int[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'moving keys requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT s.shard_number, s.map_version, s.slot_map INTO STRICT own FROM eventsql.shard s FOR UPDATE;
    IF own.map_version = p_version AND own.slot_map = p_slot_map THEN
        RETURN;
    ELSIF own.map_version <> p_version - 1 OR NOT EXISTS (
        SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.slot_map = p_slot_map)
    THEN
        RAISE EXCEPTION 'map version is %, not %', own.map_version, p_version - 1 USING ERRCODE = 'ES001';
    END IF;
    leaves := own.shard_number <> ALL (p_slot_map);
    -- No stream is created in the meantime, and none becomes stationary.
    moving := ARRAY(
        SELECT s.stream_id FROM eventsql.stream s
        WHERE NOT EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = s.name));
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = ANY (moving) ORDER BY p.stream_id, p.partition FOR UPDATE;
    -- New statements see what was appended before the locks were granted.
    INSERT INTO eventsql.slot_end (map_version, stream_id, partition, end_offset)
    SELECT p_version, p.stream_id, p.partition, h.next_offset
    FROM eventsql.stream_partition p
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    WHERE p.stream_id = ANY (moving);
    INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
    SELECT s, eventsql.next_map_version_v1(m.map_version, p_version), p_version, m.partitions, m.slots, m.moved
    FROM unnest(moving) AS s CROSS JOIN LATERAL eventsql.current_map_v1(s) m;
    UPDATE eventsql.stream_partition p
    SET map_version = CASE WHEN leaves THEN -l.map_version ELSE l.map_version END
    FROM eventsql.stream_placement l
    WHERE l.stream_id = p.stream_id AND l.cluster_version = p_version;
    INSERT INTO eventsql.closed_slots (map_version, slots)
    SELECT p_version, array_agg(u.slot - 1 ORDER BY u.slot)
    FROM unnest(own.slot_map, p_slot_map) WITH ORDINALITY AS u (owner, next_owner, slot)
    WHERE u.owner = own.shard_number AND u.next_owner <> own.shard_number
    HAVING count(*) > 0;
    UPDATE eventsql.shard s
    SET map_version = p_version, slot_map = p_slot_map, former_slot_map = own.slot_map,
        spare_shards = ARRAY(SELECT u FROM unnest(s.spare_shards) AS u WHERE u <> ALL (p_slot_map));
END $$;

-- As in version 29, but stationary streams need not be prepared.
CREATE OR REPLACE FUNCTION eventsql.finish_move_v1(p_version int, p_slot_map smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    own        int;
    unprepared text;
BEGIN
    SELECT s.map_version INTO STRICT own FROM eventsql.shard s FOR UPDATE;
    IF own < p_version - 1 OR own > p_version THEN
        RAISE EXCEPTION 'map version is %, not %', own, p_version - 1 USING ERRCODE = 'ES001';
    END IF;
    IF EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.is_receiver) THEN
        SELECT min(s.name) INTO unprepared
        FROM eventsql.stream s
        WHERE NOT EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = s.name)
          AND (NOT EXISTS (
                SELECT FROM eventsql.stream_placement l
                WHERE l.stream_id = s.stream_id AND l.cluster_version = p_version)
            OR EXISTS (
                SELECT FROM eventsql.moved_partition m
                WHERE m.stream_id = s.stream_id AND m.map_version = p_version AND NOT m.is_open));
        IF unprepared IS NOT NULL THEN
            RAISE EXCEPTION 'stream % is not prepared for map version %', unprepared, p_version USING ERRCODE = 'ES027';
        END IF;
    END IF;
    UPDATE eventsql.shard s
    SET map_version = p_version, slot_map = p_slot_map, former_slot_map = NULL,
        spare_shards = ARRAY(SELECT u FROM unnest(s.spare_shards) AS u WHERE u <> ALL (p_slot_map));
    DELETE FROM eventsql.shard_move m WHERE m.map_version <= p_version;
END $$;

-- As in version 29, but a stationary stream is not closed: its keys belong to shards by its own slot map. If the stream is fenced
-- on other shards, it is fenced from the beginning.
CREATE OR REPLACE FUNCTION eventsql.close_new_stream_v1(p_stream text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id      int;
    stays   boolean;
    fenced  boolean;
BEGIN
    SELECT s.stream_id, s.compaction OR s.key_tracking <> 'off' INTO id, stays FROM eventsql.stream s
    WHERE s.name = p_stream AND s.xmin = pg_current_xact_id()::xid; -- not one that another process has created
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT k.is_fenced INTO fenced FROM eventsql.stationary_stream k WHERE k.stream = p_stream;
    stays := stays OR FOUND; -- a spare shard has not recorded it
    IF fenced THEN
        PERFORM eventsql.fence_stream_v1(id);
    ELSIF NOT stays AND (EXISTS (SELECT FROM eventsql.shard s WHERE s.shard_number <> ALL (s.slot_map))
        OR EXISTS (SELECT FROM eventsql.shard_move m WHERE m.is_frozen))
    THEN
        INSERT INTO eventsql.partition_barrier (stream_id, partition, giver, end_offset)
        SELECT id, p.partition, 0, 9223372036854775807 FROM eventsql.stream_partition p WHERE p.stream_id = id
        ON CONFLICT DO NOTHING;
        UPDATE eventsql.stream_partition p SET map_version = -abs(p.map_version) WHERE p.stream_id = id;
    END IF;
END $$;

-- As in version 30, but not while keys of stationary streams belong to this shard.
CREATE OR REPLACE FUNCTION eventsql.remove_shard_v1() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    own    record;
    reason text;
BEGIN
    SELECT s.* INTO STRICT own FROM eventsql.shard s FOR UPDATE;
    IF own.shard_number = ANY (own.removed_shards) THEN
        RETURN NULL;
    ELSIF own.shard_number = ANY (own.slot_map) THEN
        RETURN 'keys belong to it; move them to other shards first';
    ELSIF own.former_slot_map IS NOT NULL OR EXISTS (SELECT FROM eventsql.shard_move) THEN
        RETURN 'keys are being moved; complete or cancel that first';
    END IF;
    SELECT format('keys of streams that stay on their shards belong to it: %s', string_agg(k.stream, ', ' ORDER BY k.stream))
    INTO reason
    FROM eventsql.stationary_stream k WHERE own.shard_number = ANY (k.slot_map)
    HAVING count(*) > 0;
    IF reason IS NOT NULL THEN
        RETURN reason;
    END IF;
    SELECT format('stream %s has %s events there, until its retention removes them', s.name, sum(h.next_offset - p.log_start))
    INTO reason
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    WHERE h.next_offset > p.log_start
    GROUP BY s.name ORDER BY s.name LIMIT 1;
    reason := coalesce(
        reason,
        (SELECT format('consumer %s of stream %s has parked events there; redrive or drop them', c.name, s.name)
         FROM eventsql.parked_event e JOIN eventsql.consumer c USING (consumer_id) JOIN eventsql.stream s USING (stream_id)
         WHERE e.dead_letter_offset IS NULL LIMIT 1),
        (SELECT format('consumer %s of stream %s has parked events on shard %s of keys that had moved from there; redrive or drop'
                       ' them', c.name, s.name, own.shard_names[k.giver + 1])
         FROM eventsql.parked_key k JOIN eventsql.consumer c USING (consumer_id) JOIN eventsql.stream s USING (stream_id)
         WHERE k.giver IS NOT NULL LIMIT 1),
        (SELECT format('consumer %s of stream %s has not handled what came before on shard %s', c.name, s.name,
                       own.shard_names[h.giver + 1])
         FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id)
         CROSS JOIN LATERAL eventsql.held_by_shards_v1(c.consumer_id) h LIMIT 1),
        CASE WHEN EXISTS (SELECT FROM eventsql.outbox) THEN 'its outbox has events, which the relay moves' END,
        CASE WHEN EXISTS (SELECT FROM eventsql.outbox_transfer) THEN 'its outbox has events on their way to other shards' END,
        CASE WHEN EXISTS (SELECT FROM eventsql.outbox_refused) THEN 'its outbox has refused events' END,
        CASE WHEN EXISTS (SELECT FROM eventsql.scheduled_event) THEN 'it has scheduled events, which are not due yet' END);
    IF reason IS NULL THEN
        PERFORM eventsql.forget_shard_v1(own.shard_number);
    END IF;
    RETURN reason;
END $$;

-- publish_counted_v2 is what publish_counted_v1 was. A process of the previous release, which calls that, may count a key on a shard
-- that it does not belong to, once keys of other streams have moved.
--
-- Errors: ES001 the process does not know that the stream stays.
ALTER FUNCTION eventsql.publish_counted_v1 RENAME TO publish_counted_v2;
CREATE FUNCTION eventsql.publish_counted_v1(
    p_cluster uuid, p_stream text, p_routing_hash int, p_shards int[], p_partitions int[],
    p_keys text[], p_values bytea[], p_headers text[], p_expected bigint)
RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    IF EXISTS (SELECT FROM eventsql.stationary_stream k WHERE k.stream = p_stream AND k.is_fenced) THEN
        RAISE EXCEPTION 'stream % stays on its shards, which this release of the library does not know', p_stream
            USING ERRCODE = 'ES001';
    END IF;
    RETURN eventsql.publish_counted_v2(
        p_cluster, p_stream, p_routing_hash, p_shards, p_partitions, p_keys, p_values, p_headers, p_expected);
END $$;

REVOKE ALL ON FUNCTION
    eventsql.record_stationary_stream_v1, eventsql.forget_stationary_stream_v1, eventsql.forget_deleted_stream_v1,
    eventsql.reject_placement_v1, eventsql.fence_stream_v1, eventsql.decide_move_v2, eventsql.join_move_v2, eventsql.add_move_v2,
    eventsql.keep_streams_v1, eventsql.begin_closing_v2 FROM PUBLIC;

-- Where roles.sql was applied, the roles that read where partitions are read what stays, too.
DO $$
DECLARE
    grants record;
BEGIN
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.stream_placement'::regclass AND a.privilege_type = 'SELECT'
          AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT ON eventsql.stationary_stream, eventsql.sink_producer TO %s', grants.role);
    END LOOP;
END $$;
