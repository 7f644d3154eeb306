-- EventSQL: keys move between shards, shards join and leave (decision 44).

INSERT INTO eventsql.schema_version (version, description) VALUES (29, 'shards');

SET LOCAL lock_timeout = '3s';

-- former_slot_map: the slot map that was valid before, from the moment this shard has closed slots until all shards know the new map.
-- Then slots of other shards belong where former_slot_map says, unless those shards have closed them, too. NULL: slot_map is valid.
-- spare_shards, removed_shards: shards without any event, whose databases processes need not be given. No keys have belonged to a
-- spare one yet; a removed one was emptied, and will not get any.
ALTER TABLE eventsql.shard
    ADD COLUMN former_slot_map smallint[],
    ADD COLUMN spare_shards    smallint[] NOT NULL DEFAULT '{}',
    ADD COLUMN removed_shards  smallint[] NOT NULL DEFAULT '{}';

-- The next slot map, on each shard that knows it until that shard has it. Moves to a version are decided on one shard, the first
-- one with slots by the map before.
CREATE TABLE eventsql.shard_move (
    map_version int         PRIMARY KEY,
    slot_map    smallint[]  NOT NULL,
    attempt     bigint      NOT NULL,                  -- numbers the decisions: of a cancelled one nothing counts any more
    is_plan     boolean     NOT NULL,                  -- moves are decided here, and this one was not cancelled
    is_receiver boolean     NOT NULL,                  -- this shard receives slots
    is_frozen   boolean     NOT NULL DEFAULT false,    -- all streams are prepared; those created from now on are closed
    is_closing  boolean     NOT NULL DEFAULT false,    -- the move cannot be cancelled any more; only where it was decided
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE SEQUENCE eventsql.shard_move_attempt;

-- The maps of the streams since keys have moved to this shard or away from it; they follow those of stream_map. Processes of the
-- previous release do not know this table, so their appends are rejected.
CREATE TABLE eventsql.stream_placement (
    stream_id       int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    map_version     int         NOT NULL,              -- of the stream on this shard
    cluster_version int         NOT NULL,              -- of the slot map that it belongs to
    partitions      int         NOT NULL,              -- those over which slots spreads keys
    slots           smallint[],                        -- as in stream_map; NULL: hash % partitions
    moved           smallint[],                        -- the partition of each key slot; -1: as slots says. NULL: as slots says
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, map_version)
);

-- The ends of a stream's partitions when this shard closed slots, of empty ones, too: a shard without any barrier is not waited for.
CREATE TABLE eventsql.slot_end (
    map_version int    NOT NULL,
    stream_id   int    NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition   int    NOT NULL,
    end_offset  bigint NOT NULL,
    PRIMARY KEY (map_version, stream_id, partition)
);

-- The slots that this shard has closed.
CREATE TABLE eventsql.closed_slots (
    map_version int        PRIMARY KEY,
    slots       smallint[] NOT NULL
);

-- The partitions that receive the keys of moved slots. Until is_open they are closed by partition_barrier, too.
CREATE TABLE eventsql.moved_partition (
    stream_id   int     NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition   int     NOT NULL,
    map_version int     NOT NULL,
    is_open     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (stream_id, partition)
);

-- What a consumer must have handled on other shards before it may handle the partitions of moved_partition with this map version.
CREATE TABLE eventsql.shard_barrier (
    stream_id       int    NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    map_version     int    NOT NULL,
    giver           int    NOT NULL,                   -- shard
    giver_partition int    NOT NULL,
    end_offset      bigint NOT NULL,
    PRIMARY KEY (stream_id, map_version, giver, giver_partition)
);

-- The consumers that have handled what a shard had to be handled of: databases do not see each other, so members report it.
CREATE TABLE eventsql.shard_barrier_passed (
    consumer_id int NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    map_version int NOT NULL,
    giver       int NOT NULL,
    PRIMARY KEY (consumer_id, map_version, giver)
);

-- How often a consumer was moved: on this shard, and on another one at least, as far as this shard knows. What was reported of a
-- shard counts only if it was read there after the last one.
CREATE TABLE eventsql.consumer_seek (
    consumer_id int    NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    shard       int    NOT NULL,
    seeks       bigint NOT NULL,
    PRIMARY KEY (consumer_id, shard)
);

-- Returns the version that a stream's map gets when keys move: above the former one, and never the one that a stream created later
-- begins with, which is one less at least.
CREATE FUNCTION eventsql.next_map_version_v1(p_former int, p_cluster_version int) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT greatest(abs(p_former) + 1, (p_cluster_version - 1) * 65536 + 2) $$;

-- Returns the valid map of a stream on this shard, whose rows the caller has locked. A negative version in stream_partition matches
-- that of no append: the shard has no slots.
--
-- Indexes: the primary keys. Takes no lock.
CREATE FUNCTION eventsql.current_map_v1(
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
        WHERE g.stream_id = s.stream_id ORDER BY g.map_version DESC LIMIT 1) m ON true
    WHERE s.stream_id = p_stream_id;
END $$;

-- Rejects a move while a stream or a sink has state that would have to move with the keys. Called with the row of shard locked
-- against the creation of streams, before shard_move has a row that rejects such streams.
--
-- Scans stream and sink_producer, which are small.
--
-- Errors: ES028 there is such a stream or sink.
CREATE FUNCTION eventsql.require_movable_v1() RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    reason text;
BEGIN
    SELECT format(CASE WHEN s.compaction
                       THEN 'stream %s has compaction, which would keep a former event of each key that moves'
                       ELSE 'stream %s counts the events of its keys where they are stored' END, s.name)
    INTO reason
    FROM eventsql.stream s WHERE s.compaction OR s.key_tracking <> 'off' ORDER BY s.name LIMIT 1;
    IF reason IS NULL THEN
        SELECT format('sink %s of an engine writes by the slots as they are; delete it when no job uses it', p.sink)
        INTO reason
        FROM eventsql.sink_producer p ORDER BY p.sink LIMIT 1;
    END IF;
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION '%', reason USING ERRCODE = 'ES028';
    END IF;
END $$;

-- Rejects what require_movable_v1 rejects from the moment a shard knows of a move, and compaction of streams whose keys have moved.
CREATE FUNCTION eventsql.reject_unmovable_stream_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.shard s FOR SHARE;
    IF EXISTS (SELECT FROM eventsql.shard_move) THEN
        RAISE EXCEPTION 'keys are being moved between shards; complete or cancel that before stream % has compaction or counts the events of its keys',
            NEW.name USING ERRCODE = 'ES028';
    ELSIF EXISTS (SELECT FROM eventsql.stream_placement l WHERE l.stream_id = NEW.stream_id) THEN
        RAISE EXCEPTION 'keys of stream % have moved between shards, which compaction does not know', NEW.name
            USING ERRCODE = 'ES028';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER reject_unmovable_stream_when_created BEFORE INSERT ON eventsql.stream
    FOR EACH ROW WHEN (NEW.compaction OR NEW.key_tracking <> 'off')
    EXECUTE FUNCTION eventsql.reject_unmovable_stream_v1();
CREATE TRIGGER reject_unmovable_stream_when_altered BEFORE UPDATE ON eventsql.stream
    FOR EACH ROW WHEN (NEW.compaction AND NOT OLD.compaction OR NEW.key_tracking <> OLD.key_tracking)
    EXECUTE FUNCTION eventsql.reject_unmovable_stream_v1();

-- Decides a move, unless one to this version is decided: where moves to it are decided.
--
-- Scans shard and shard_move, which have a row each; locks that of shard.
--
-- Errors: ES001 the shard's map has another version than the one before; ES028 a stream or a sink cannot move; ES029 a shard was
-- removed.
CREATE FUNCTION eventsql.decide_move_v1(p_version int, p_slot_map smallint[], p_is_receiver boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.is_plan) THEN
        RETURN;
    END IF;
    PERFORM eventsql.add_move_v1(
        p_version, p_slot_map, nextval('eventsql.shard_move_attempt'), true, p_is_receiver);
END $$;

-- Records a move that was decided on another shard. One that was decided there before, and cancelled, leaves nothing behind.
--
-- Scans shard and shard_move, which have a row each; locks that of shard.
--
-- Errors: those of decide_move_v1; ES001 also if the move was cancelled, and another one decided.
CREATE FUNCTION eventsql.join_move_v1(p_version int, p_slot_map smallint[], p_attempt bigint, p_is_receiver boolean)
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
    PERFORM eventsql.add_move_v1(p_version, p_slot_map, p_attempt, false, p_is_receiver);
END $$;

-- Adds a move, in place of one that was cancelled. Called with the row of shard locked.
CREATE FUNCTION eventsql.add_move_v1(
    p_version int, p_slot_map smallint[], p_attempt bigint, p_is_plan boolean, p_is_receiver boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own record;
BEGIN
    SELECT s.map_version, s.removed_shards INTO STRICT own FROM eventsql.shard s;
    IF own.map_version <> p_version - 1 THEN
        RAISE EXCEPTION 'map version is %, not %', own.map_version, p_version - 1 USING ERRCODE = 'ES001';
    ELSIF own.removed_shards && p_slot_map THEN
        RAISE EXCEPTION 'one of the shards was removed' USING ERRCODE = 'ES029';
    END IF;
    PERFORM eventsql.leave_move_v1(p_version, p_attempt);
    PERFORM eventsql.require_movable_v1();
    INSERT INTO eventsql.shard_move (map_version, slot_map, attempt, is_plan, is_receiver)
    VALUES (p_version, p_slot_map, p_attempt, p_is_plan, p_is_receiver);
END $$;

-- From now on streams that are created on this shard, which receives slots, are closed until they are prepared.
--
-- Scans shard and shard_move; locks their rows. Index: the primary key of stream_placement.
--
-- Errors: ES001 the move was cancelled; ES027 a stream is not prepared.
CREATE FUNCTION eventsql.freeze_receiver_v1(p_version int, p_attempt bigint) RETURNS void
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
    WHERE NOT EXISTS (
        SELECT FROM eventsql.stream_placement l WHERE l.stream_id = s.stream_id AND l.cluster_version = p_version);
    IF unprepared IS NOT NULL THEN
        RAISE EXCEPTION 'stream % is not prepared for map version %', unprepared, p_version USING ERRCODE = 'ES027';
    END IF;
    UPDATE eventsql.shard_move m SET is_frozen = true WHERE m.map_version = p_version AND m.attempt = p_attempt;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
END $$;

-- Excludes that the move is cancelled from now on: where it was decided, after all receivers are frozen.
--
-- Index: the primary key. Locks the row.
--
-- Errors: ES001 the move is not this one.
CREATE FUNCTION eventsql.begin_closing_v1(p_version int, p_attempt bigint) RETURNS void
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

-- Returns the version of the slot map, for a stream that is being created, and keeps it until that is committed.
--
-- Scans shard; locks its row in share mode.
CREATE FUNCTION eventsql.slots_of_new_stream_v1() RETURNS int
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
BEGIN
    RETURN (SELECT s.map_version FROM eventsql.shard s FOR SHARE);
END $$;

-- Closes a stream that this transaction has created, if this shard has no slots, or is frozen: no consumer takes its partitions
-- before a move has opened them, and no append has the version of their map.
--
-- Indexes: stream_name_unique, the primary keys. Locks only rows of the stream.
CREATE FUNCTION eventsql.close_new_stream_v1(p_stream text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id int;
BEGIN
    SELECT s.stream_id INTO id FROM eventsql.stream s
    WHERE s.name = p_stream AND s.xmin = pg_current_xact_id()::xid; -- not one that another process has created
    IF FOUND AND (EXISTS (SELECT FROM eventsql.shard s WHERE s.shard_number <> ALL (s.slot_map))
        OR EXISTS (SELECT FROM eventsql.shard_move m WHERE m.is_frozen))
    THEN
        INSERT INTO eventsql.partition_barrier (stream_id, partition, giver, end_offset)
        SELECT id, p.partition, 0, 9223372036854775807 FROM eventsql.stream_partition p WHERE p.stream_id = id
        ON CONFLICT DO NOTHING;
        UPDATE eventsql.stream_partition p SET map_version = -abs(p.map_version) WHERE p.stream_id = id;
    END IF;
END $$;

-- Gives a stream the map by which the keys of slots that this shard receives belong to fresh partitions. No publisher knows that the
-- slots belong here before their giver has closed them.
--
-- p_former: the version of the map that the caller has seen. p_moved: the partition of each key slot, or NULL if all partitions are
-- fresh. p_fresh: the fresh partitions.
--
-- Indexes: the primary keys. Locks the rows of all partitions of the stream, in their order.
--
-- Errors: ES001 the stream's map has another version, or the move was cancelled; ES003 the transaction is not READ COMMITTED;
-- ES024 a partition has no table yet; ES025 a partition is in use already.
CREATE FUNCTION eventsql.receive_slots_v1(
    p_version int, p_attempt bigint, p_stream_id int, p_former int, p_moved smallint[], p_fresh int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    former record;
    next   int;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'moving keys requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    PERFORM FROM eventsql.shard s FOR SHARE;
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.attempt = p_attempt) THEN
        RAISE EXCEPTION 'the move to map version % was cancelled', p_version USING ERRCODE = 'ES001';
    END IF;
    PERFORM FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id ORDER BY p.partition FOR UPDATE;
    IF EXISTS (
        SELECT FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id AND l.cluster_version = p_version)
    THEN
        RETURN;
    END IF;
    SELECT * INTO former FROM eventsql.current_map_v1(p_stream_id);
    IF former.map_version <> p_former THEN
        RAISE EXCEPTION 'map version is %, not %', former.map_version, p_former USING ERRCODE = 'ES001';
    END IF;
    IF EXISTS (
        SELECT FROM unnest(p_fresh) AS p
        WHERE NOT EXISTS (SELECT FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = p))
    THEN
        RAISE EXCEPTION 'a partition of the new map has no table yet' USING ERRCODE = 'ES024';
    END IF;
    IF EXISTS (
        SELECT FROM unnest(p_fresh) AS p
        WHERE NOT EXISTS (
            SELECT FROM eventsql.partition_barrier b
            WHERE b.stream_id = p_stream_id AND b.partition = p AND b.end_offset = 9223372036854775807)
        OR EXISTS (
            SELECT FROM eventsql.producer_batch b
            WHERE b.stream_id = p_stream_id AND b.partition = p AND b.next_offset > 0))
    THEN
        RAISE EXCEPTION 'a partition of the new map is in use already' USING ERRCODE = 'ES025';
    END IF;
    next := eventsql.next_map_version_v1(former.map_version, p_version);
    INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
    VALUES (p_stream_id, next, p_version, former.partitions, former.slots, p_moved);
    INSERT INTO eventsql.moved_partition (stream_id, partition, map_version)
    SELECT p_stream_id, p, p_version FROM unnest(p_fresh) AS p;
    UPDATE eventsql.stream_partition p SET map_version = next WHERE p.stream_id = p_stream_id;
END $$;

-- Closes the slots that this shard gives away, in one transaction: under the locks that every append takes first, it reads the ends
-- of all partitions, and raises the versions of all maps. Before the commit nothing has changed, afterwards no event of these slots
-- is stored here. A shard that gives all of its slots away accepts no event any more: the versions match that of no append.
--
-- Indexes: the primary keys, producer_batch_head. Locks the row of shard, and those of all partitions of all streams, in their order.
--
-- Errors: ES001 the shard has another map, or does not know of the move; ES003 the transaction is not READ COMMITTED.
CREATE FUNCTION eventsql.close_slots_v1(p_version int, p_slot_map smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' -- publishers wait for the rows that are locked already
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    own     record;
    leaves  boolean;
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
    PERFORM FROM eventsql.stream_partition p ORDER BY p.stream_id, p.partition FOR UPDATE;
    -- New statements see what was appended before the locks were granted.
    INSERT INTO eventsql.slot_end (map_version, stream_id, partition, end_offset)
    SELECT p_version, p.stream_id, p.partition, h.next_offset
    FROM eventsql.stream_partition p
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h;
    INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
    SELECT s.stream_id, eventsql.next_map_version_v1(m.map_version, p_version), p_version, m.partitions, m.slots, m.moved
    FROM eventsql.stream s CROSS JOIN LATERAL eventsql.current_map_v1(s.stream_id) m;
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

-- Lets consumers take the partitions that were prepared for moved slots, once they have handled the ends on the shards that gave the
-- slots, all of which have closed them.
--
-- p_streams, p_givers, p_partitions, p_ends: one element for each partition of those shards.
--
-- Indexes: the primary keys. Locks the rows of the barriers.
CREATE FUNCTION eventsql.open_slots_v1(
    p_version int, p_streams text[], p_givers int[], p_partitions int[], p_ends bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.shard s FOR NO KEY UPDATE; -- one at a time
    INSERT INTO eventsql.shard_barrier (stream_id, map_version, giver, giver_partition, end_offset)
    SELECT s.stream_id, p_version, e.giver, e.partition, e.end_offset
    FROM unnest(p_streams, p_givers, p_partitions, p_ends) AS e (stream, giver, partition, end_offset)
    JOIN eventsql.stream s ON s.name = e.stream
    ON CONFLICT DO NOTHING;
    DELETE FROM eventsql.partition_barrier b
    USING eventsql.moved_partition m
    WHERE m.map_version = p_version AND NOT m.is_open AND b.stream_id = m.stream_id AND b.partition = m.partition
      AND b.end_offset = 9223372036854775807;
    UPDATE eventsql.moved_partition m SET is_open = true WHERE m.map_version = p_version AND NOT m.is_open;
END $$;

-- Makes the new slot map the valid one: all givers have closed, all receivers are open.
--
-- Scans shard; locks its row. Indexes: the primary keys.
--
-- Errors: ES001 the shard has another map; ES027 a stream has not been prepared, because it was created in between.
CREATE FUNCTION eventsql.finish_move_v1(p_version int, p_slot_map smallint[]) RETURNS void
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
        WHERE NOT EXISTS (
                SELECT FROM eventsql.stream_placement l
                WHERE l.stream_id = s.stream_id AND l.cluster_version = p_version)
           OR EXISTS (
                SELECT FROM eventsql.moved_partition m
                WHERE m.stream_id = s.stream_id AND m.map_version = p_version AND NOT m.is_open);
        IF unprepared IS NOT NULL THEN
            RAISE EXCEPTION 'stream % is not prepared for map version %', unprepared, p_version USING ERRCODE = 'ES027';
        END IF;
    END IF;
    UPDATE eventsql.shard s
    SET map_version = p_version, slot_map = p_slot_map, former_slot_map = NULL,
        spare_shards = ARRAY(SELECT u FROM unnest(s.spare_shards) AS u WHERE u <> ALL (p_slot_map));
    DELETE FROM eventsql.shard_move m WHERE m.map_version <= p_version;
END $$;

-- Cancels what was decided here, unless slots may have been closed. Returns the number of the last decision, of which nothing
-- counts any more, nor of earlier ones; NULL: it is too late.
--
-- Scans shard_move and shard; locks their rows.
CREATE FUNCTION eventsql.cancel_move_v1(p_version int) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    last bigint;
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.is_closing)
        OR EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version)
    THEN
        RETURN NULL;
    END IF;
    SELECT CASE WHEN q.is_called THEN q.last_value ELSE 0 END INTO STRICT last FROM eventsql.shard_move_attempt q;
    PERFORM eventsql.leave_move_v1(p_version, last);
    RETURN last;
END $$;

-- Forgets a move that was cancelled where it was decided, and gives the streams of a receiver their former maps. The fresh partitions
-- stay closed.
--
-- p_attempt: the last one that counts no more.
--
-- Indexes: the primary keys. Locks the row of shard, and those of all partitions of the streams, in their order.
CREATE FUNCTION eventsql.leave_move_v1(p_version int, p_attempt bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $$
DECLARE
    has_no boolean;
BEGIN
    PERFORM FROM eventsql.shard s FOR UPDATE;
    IF EXISTS (SELECT FROM eventsql.shard s WHERE s.map_version >= p_version) OR NOT EXISTS (
        SELECT FROM eventsql.shard_move m WHERE m.map_version = p_version AND m.attempt <= p_attempt)
    THEN
        RETURN;
    END IF;
    has_no := EXISTS (SELECT FROM eventsql.shard s WHERE s.shard_number <> ALL (s.slot_map));
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id IN (SELECT l.stream_id FROM eventsql.stream_placement l WHERE l.cluster_version = p_version)
    ORDER BY p.stream_id, p.partition FOR UPDATE;
    -- The former map, under a version that no append has named.
    INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
    SELECT l.stream_id, l.map_version + 1, p_version - 1, l.partitions, l.slots, b.moved
    FROM eventsql.stream_placement l
    LEFT JOIN LATERAL (
        SELECT g.moved FROM eventsql.stream_placement g
        WHERE g.stream_id = l.stream_id AND g.map_version < l.map_version ORDER BY g.map_version DESC LIMIT 1) b ON true
    WHERE l.cluster_version = p_version;
    UPDATE eventsql.stream_partition p
    SET map_version = CASE WHEN has_no THEN -(l.map_version + 1) ELSE l.map_version + 1 END
    FROM eventsql.stream_placement l
    WHERE l.stream_id = p.stream_id AND l.cluster_version = p_version;
    DELETE FROM eventsql.stream_placement l WHERE l.cluster_version = p_version;
    DELETE FROM eventsql.moved_partition m WHERE m.map_version = p_version;
    DELETE FROM eventsql.shard_move m WHERE m.map_version = p_version;
END $$;

-- Removes this shard from its cluster, if no key belongs to it and it has no events. Returns why it cannot be removed yet; NULL: it is
-- removed.
--
-- Scans shard, shard_move, the outbox and scheduled events; locks the row of shard. Indexes: the primary keys, producer_batch_head.
CREATE FUNCTION eventsql.remove_shard_v1() RETURNS text
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

-- Records that a shard was removed: no consumer waits for it any more.
--
-- Scans the tables, which have a row for each partition and consumer; locks the row of shard, and those that are deleted.
CREATE FUNCTION eventsql.forget_shard_v1(p_shard int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    UPDATE eventsql.shard s
    SET removed_shards = array_append(array_remove(s.removed_shards, p_shard::smallint), p_shard::smallint),
        spare_shards = array_remove(s.spare_shards, p_shard::smallint);
    DELETE FROM eventsql.shard_barrier b WHERE b.giver = p_shard;
    DELETE FROM eventsql.shard_barrier_passed d WHERE d.giver = p_shard;
END $$;

-- Returns the partitions that a consumer may not handle yet because of other shards, each with such a shard.
--
-- Indexes: the primary keys. Takes no lock.
CREATE FUNCTION eventsql.held_by_shards_v1(p_consumer_id int)
RETURNS TABLE (partition int, giver int, map_version int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.partition, b.giver, b.map_version
    FROM eventsql.consumer c
    JOIN eventsql.moved_partition m USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT DISTINCT s.giver, s.map_version FROM eventsql.shard_barrier s
        WHERE s.stream_id = m.stream_id AND s.map_version = m.map_version) b
    WHERE c.consumer_id = p_consumer_id AND m.is_open AND NOT EXISTS (
        SELECT FROM eventsql.shard_barrier_passed d
        WHERE d.consumer_id = p_consumer_id AND d.map_version = b.map_version AND d.giver = b.giver);
END $$;

-- Returns what a consumer must have handled on other shards, as far as no member has reported that it has.
--
-- Indexes: the primary keys. Takes no lock.
CREATE FUNCTION eventsql.awaited_of_shards_v1(p_consumer_id int)
RETURNS TABLE (map_version int, giver int, giver_partition int, end_offset bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT b.map_version, b.giver, b.giver_partition, b.end_offset
    FROM (SELECT DISTINCT h.giver, h.map_version FROM eventsql.held_by_shards_v1(p_consumer_id) h) h
    JOIN eventsql.consumer c ON c.consumer_id = p_consumer_id
    JOIN eventsql.shard_barrier b
      ON b.stream_id = c.stream_id AND b.map_version = h.map_version AND b.giver = h.giver
    ORDER BY b.map_version, b.giver, b.giver_partition;
END $$;

-- Returns how often a consumer was moved on a shard, as far as this one knows.
--
-- Index: the primary key. Takes no lock.
CREATE FUNCTION eventsql.seeks_v1(p_consumer_id int, p_shard int) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce((
        SELECT k.seeks FROM eventsql.consumer_seek k WHERE k.consumer_id = p_consumer_id AND k.shard = p_shard), 0);
END $$;

-- Returns how often a consumer was moved on this shard, if it has handled the given partitions up to their ends, and NULL otherwise.
-- A partition whose end was lost with the database's history was handled if everything is that is left.
--
-- Indexes: the primary keys, consumer_offset_newest, producer_batch_head. Takes no lock. The number is read first: a seek that
-- commits later makes it too small.
CREATE FUNCTION eventsql.has_handled_v1(
    p_consumer_id int, p_shard int, p_map_version int, p_partitions int[], p_ends bigint[]) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    seeks bigint := eventsql.seeks_v1(p_consumer_id, p_shard);
BEGIN
    -- An empty partition counts, too: its keys may have moved here and on without an event. Only what moved here before counts:
    -- versions fall along a chain of shards that wait, so it has an end.
    IF EXISTS (SELECT FROM eventsql.held_by_shards_v1(p_consumer_id) s WHERE s.map_version < p_map_version)
        OR EXISTS (SELECT FROM eventsql.held_partitions_v1(p_consumer_id) h WHERE h.partition = ANY (p_partitions))
        OR EXISTS (
        SELECT
        FROM eventsql.consumer c
        CROSS JOIN unnest(p_partitions, p_ends) AS e (partition, end_offset)
        LEFT JOIN LATERAL (
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = c.stream_id AND b.partition = e.partition
            ORDER BY b.next_offset DESC LIMIT 1) h ON true
        LEFT JOIN LATERAL (
            SELECT o.next_offset FROM eventsql.consumer_offset o
            WHERE o.consumer_id = c.consumer_id AND o.partition = e.partition
            ORDER BY o.commit_number DESC LIMIT 1) n ON true
        WHERE c.consumer_id = p_consumer_id
          AND coalesce(n.next_offset, 0) < least(e.end_offset, coalesce(h.next_offset, 0)))
    THEN
        RETURN NULL;
    END IF;
    RETURN seeks;
END $$;

-- Records that a consumer has handled what a shard had to be handled of. Returns false if it has been moved there since p_seeks was
-- read.
--
-- Indexes: the primary keys. Locks the consumer's row, but not against foreign keys, so it never waits for heartbeats.
CREATE FUNCTION eventsql.pass_shard_v1(p_consumer_id int, p_map_version int, p_giver int, p_seeks bigint) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    IF NOT FOUND OR eventsql.seeks_v1(p_consumer_id, p_giver) > p_seeks THEN
        RETURN false;
    END IF;
    INSERT INTO eventsql.shard_barrier_passed (consumer_id, map_version, giver)
    VALUES (p_consumer_id, p_map_version, p_giver)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Counts that a consumer is moved on this shard, in the transaction that moves it. Returns false if it was moved since p_seeks was
-- read, or keys have moved since the caller read the shard's map.
--
-- Indexes: the primary keys. Locks the consumer's row, but not against foreign keys; the row of shard in share mode.
CREATE FUNCTION eventsql.count_seek_v1(p_consumer_id int, p_seeks bigint, p_cluster_version int) RETURNS boolean
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
    INSERT INTO eventsql.consumer_seek AS k (consumer_id, shard, seeks)
    VALUES (p_consumer_id, own.shard_number, p_seeks + 1)
    ON CONFLICT (consumer_id, shard) DO UPDATE SET seeks = p_seeks + 1;
    RETURN true;
END $$;

-- Holds a consumer back, because it is going to be moved on other shards: what was reported of them counts no more, unless it is read
-- after p_seeks moves. Takes the partitions that are held back then from their members.
--
-- Indexes: the primary keys. Locks the consumer's row, then those of its partitions, in their order.
CREATE FUNCTION eventsql.hold_receivers_v1(p_consumer_id int, p_givers int[], p_seeks bigint[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
DECLARE
    held record;
BEGIN
    PERFORM FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id ORDER BY p.partition FOR NO KEY UPDATE;
    INSERT INTO eventsql.consumer_seek AS k (consumer_id, shard, seeks)
    SELECT p_consumer_id, g.giver, g.seeks FROM unnest(p_givers, p_seeks) AS g (giver, seeks)
    ON CONFLICT (consumer_id, shard) DO UPDATE SET seeks = greatest(k.seeks, excluded.seeks);
    DELETE FROM eventsql.shard_barrier_passed d WHERE d.consumer_id = p_consumer_id AND d.giver = ANY (p_givers);
    FOR held IN
        SELECT DISTINCT h.partition
        FROM eventsql.held_partitions_v1(p_consumer_id) h
        JOIN eventsql.consumer_partition p ON p.consumer_id = p_consumer_id AND p.partition = h.partition
        WHERE p.member_id IS NOT NULL
    LOOP
        PERFORM eventsql.terminate_handling_v1(p_consumer_id, held.partition);
        PERFORM eventsql.raise_epoch_v1(p_consumer_id, held.partition, NULL);
        UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
        WHERE p.consumer_id = p_consumer_id AND p.partition = held.partition;
    END LOOP;
END $$;

-- As in version 25, but partitions wait for other shards, too.
CREATE OR REPLACE FUNCTION eventsql.held_partitions_v1(p_consumer_id int)
RETURNS TABLE (partition int, giver int, next_offset bigint, end_offset bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (
        SELECT FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
        WHERE c.consumer_id = p_consumer_id)
        AND NOT EXISTS (SELECT FROM eventsql.held_by_shards_v1(p_consumer_id))
    THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH RECURSIVE barrier AS MATERIALIZED (
        SELECT b.partition, b.giver, o.next_offset, b.end_offset
        FROM eventsql.consumer c
        JOIN eventsql.partition_barrier b USING (stream_id)
        CROSS JOIN LATERAL (
            SELECT n.next_offset FROM eventsql.consumer_offset n
            WHERE n.consumer_id = c.consumer_id AND n.partition = b.giver
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE c.consumer_id = p_consumer_id
    ), held AS (
        (SELECT b.partition, b.giver, b.next_offset, b.end_offset FROM barrier b WHERE b.next_offset < b.end_offset
         UNION
         SELECT DISTINCT s.partition, -1, 0::bigint, 0::bigint FROM eventsql.held_by_shards_v1(p_consumer_id) s)
        UNION
        SELECT b.partition, b.giver, b.next_offset, b.end_offset FROM held h JOIN barrier b ON b.giver = h.partition
    )
    SELECT h.partition, h.giver, h.next_offset, h.end_offset FROM held h;
END $$;

-- As in version 25; names the other shard for which a partition waits.
CREATE OR REPLACE FUNCTION eventsql.waits_for_v1(p_stream text, p_consumer text, p_partition int) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    IF EXISTS (
        SELECT FROM eventsql.consumer c
        JOIN eventsql.stream s USING (stream_id)
        CROSS JOIN LATERAL eventsql.held_by_shards_v1(c.consumer_id) h
        WHERE s.name = p_stream AND c.name = p_consumer AND h.partition = p_partition)
    THEN
        RETURN (
            SELECT format('waits until the consumer has handled partition %s of shard %s up to offset %s,'
                          ' and no key that has moved is parked there',
                          b.giver_partition, (SELECT i.shard_names[b.giver + 1] FROM eventsql.shard i), b.end_offset)
            FROM eventsql.consumer c
            JOIN eventsql.stream s USING (stream_id)
            CROSS JOIN LATERAL eventsql.held_by_shards_v1(c.consumer_id) h
            JOIN eventsql.shard_barrier b
              ON b.stream_id = c.stream_id AND b.map_version = h.map_version AND b.giver = h.giver
            WHERE s.name = p_stream AND c.name = p_consumer AND h.partition = p_partition
            ORDER BY b.map_version DESC, b.giver, b.giver_partition LIMIT 1);
    END IF;
    RETURN (
        SELECT CASE WHEN h.end_offset = 9223372036854775807 THEN 'is being added to the stream'
                    ELSE format('waits until partition %s was handled up to offset %s; it is %s at offset %s',
                                h.giver, h.end_offset, g.state, h.next_offset) END
        FROM eventsql.consumer c
        JOIN eventsql.stream s USING (stream_id)
        CROSS JOIN LATERAL eventsql.held_partitions_v1(c.consumer_id) h
        JOIN eventsql.consumer_partition g ON g.consumer_id = c.consumer_id AND g.partition = h.giver
        WHERE s.name = p_stream AND c.name = p_consumer AND h.partition = p_partition
        ORDER BY g.state = 'running', h.next_offset < h.end_offset DESC, h.giver
        LIMIT 1);
END $$;

-- As in version 25, but no partition with which the stream was created, nor one for keys that move here.
CREATE OR REPLACE FUNCTION eventsql.remove_partition_v1(p_stream_id int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    last_partition int;
    its_table      text;
    parent         text;
BEGIN
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_stream_id));
    SELECT max(p.partition) INTO STRICT last_partition FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id;
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = last_partition FOR UPDATE; -- a growth waits, or has ended
    IF EXISTS (SELECT FROM eventsql.stream s WHERE s.stream_id = p_stream_id AND s.partitions > last_partition)
        OR EXISTS (
        SELECT FROM eventsql.moved_partition m WHERE m.stream_id = p_stream_id AND m.partition = last_partition)
        OR NOT EXISTS (
        SELECT FROM eventsql.partition_barrier b
        WHERE b.stream_id = p_stream_id AND b.partition = last_partition AND b.end_offset = 9223372036854775807)
    THEN
        RETURN false;
    END IF;
    PERFORM FROM eventsql.consumer c WHERE c.stream_id = p_stream_id ORDER BY c.consumer_id FOR NO KEY UPDATE;
    SELECT CASE s.storage WHEN 'rows' THEN s.table_name ELSE s.table_name || '__blocks' END,
           s.table_name || '__p' || last_partition
    INTO STRICT parent, its_table
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF to_regclass(format('eventsql.%I', its_table)) IS NOT NULL THEN
        EXECUTE format('ALTER TABLE eventsql.%I DETACH PARTITION eventsql.%I', parent, its_table);
        EXECUTE format('DROP TABLE eventsql.%I', its_table);
    END IF;
    DELETE FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = last_partition;
    DELETE FROM eventsql.consumer_offset o
    USING eventsql.consumer c
    WHERE c.stream_id = p_stream_id AND o.consumer_id = c.consumer_id AND o.partition = last_partition;
    DELETE FROM eventsql.consumer_partition p
    USING eventsql.consumer c
    WHERE c.stream_id = p_stream_id AND p.consumer_id = c.consumer_id AND p.partition = last_partition;
    DELETE FROM eventsql.partition_barrier b WHERE b.stream_id = p_stream_id AND b.partition = last_partition;
    DELETE FROM eventsql.producer_batch b WHERE b.stream_id = p_stream_id AND b.partition = last_partition;
    DELETE FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id AND p.partition = last_partition;
    RETURN true;
END $$;

-- As in version 25. A shard that has given slots away moves a consumer only in a transaction that has called count_seek_v1, after
-- hold_receivers_v1 on the others: a process of the previous release calls neither.
CREATE OR REPLACE FUNCTION eventsql.seek_v1(
    p_incarnation text, p_consumer_id int, p_partition int, p_next_offset bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
DECLARE
    former_epoch bigint;
    is_known     boolean;
    held         record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    IF p_epoch IS NULL AND EXISTS (SELECT FROM eventsql.closed_slots) AND NOT EXISTS (
        SELECT FROM eventsql.consumer_seek k JOIN eventsql.shard s ON s.shard_number = k.shard
        WHERE k.consumer_id = p_consumer_id AND k.xmin = pg_current_xact_id()::xid)
    THEN
        RAISE EXCEPTION 'keys have moved to other shards, which this release of the library does not know'
            USING ERRCODE = 'ES001';
    END IF;
    -- All rows, in the order of every statement, if others may have to be freed, too.
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND (p.partition = p_partition OR EXISTS (
        SELECT FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
        WHERE c.consumer_id = p_consumer_id))
    ORDER BY p.partition FOR NO KEY UPDATE;
    PERFORM eventsql.terminate_handling_v1(p_consumer_id, p_partition);
    SELECT r.new_epoch - 1 INTO former_epoch
    FROM eventsql.raise_epoch_v1(p_consumer_id, p_partition, p_next_offset) r;
    IF former_epoch <> p_epoch THEN
        RAISE EXCEPTION 'partition % was taken by another member', p_partition USING ERRCODE = 'ES007';
    END IF;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition;
    is_known := FOUND;
    FOR held IN
        SELECT DISTINCT h.partition
        FROM eventsql.held_partitions_v1(p_consumer_id) h
        JOIN eventsql.consumer_partition p ON p.consumer_id = p_consumer_id AND p.partition = h.partition
        WHERE p.member_id IS NOT NULL
    LOOP
        PERFORM eventsql.terminate_handling_v1(p_consumer_id, held.partition);
        PERFORM eventsql.raise_epoch_v1(p_consumer_id, held.partition, NULL);
        UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
        WHERE p.consumer_id = p_consumer_id AND p.partition = held.partition;
    END LOOP;
    RETURN is_known;
END $$;

-- As in version 27, but a sink, which does not know where keys have moved, is rejected by streams whose keys have (ES028). Not written
-- out, because it may have the rights that roles.sql gave it.
DO $$
DECLARE
    definition text := pg_get_functiondef('eventsql.append_sink_v1'::regproc);
    former     text := 'ELSIF stored_map <> p_map_version THEN';
BEGIN
    IF (length(definition) - length(replace(definition, former, ''))) / length(former) <> 1 THEN
        RAISE EXCEPTION 'append_sink_v1 is not the one of version 27';
    END IF;
    EXECUTE replace(definition, former,
        'ELSIF EXISTS (SELECT FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id) THEN' || chr(10)
        || '        RAISE EXCEPTION ''keys of stream % have moved between shards, which sinks do not support'', p_stream' || chr(10)
        || '            USING ERRCODE = ''ES028'';' || chr(10)
        || '    ' || former);
END $$;

REVOKE ALL ON FUNCTION
    eventsql.decide_move_v1, eventsql.join_move_v1, eventsql.add_move_v1, eventsql.freeze_receiver_v1, eventsql.begin_closing_v1,
    eventsql.receive_slots_v1, eventsql.close_slots_v1, eventsql.open_slots_v1, eventsql.finish_move_v1, eventsql.cancel_move_v1,
    eventsql.leave_move_v1, eventsql.remove_shard_v1, eventsql.forget_shard_v1, eventsql.slots_of_new_stream_v1,
    eventsql.close_new_stream_v1, eventsql.count_seek_v1, eventsql.reject_unmovable_stream_v1 FROM PUBLIC;

-- Where roles.sql was applied, the roles that read where partitions are read these tables, too, and those that consume write what
-- consumers have handled.
DO $$
DECLARE
    grants record;
BEGIN
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.stream_map'::regclass AND a.privilege_type = 'SELECT'
          AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format(
            'GRANT SELECT ON eventsql.stream_placement, eventsql.moved_partition, eventsql.shard_barrier,'
            ' eventsql.shard_barrier_passed, eventsql.consumer_seek, eventsql.slot_end, eventsql.closed_slots, eventsql.shard_move TO %s', grants.role);
    END LOOP;
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.consumer_member'::regclass AND a.privilege_type = 'INSERT'
          AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format(
            'GRANT SELECT, INSERT, UPDATE, DELETE ON eventsql.shard_barrier_passed, eventsql.consumer_seek TO %s', grants.role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.count_seek_v1 TO %s', grants.role);
    END LOOP;
END $$;
