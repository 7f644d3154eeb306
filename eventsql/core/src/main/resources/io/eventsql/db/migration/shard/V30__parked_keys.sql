-- EventSQL: keys that are parked are parked where they move, too (decision 47).

INSERT INTO eventsql.schema_version (version, description) VALUES (30, 'parked keys');

SET LOCAL lock_timeout = '3s';

-- Returns those of some partitions that were in use when this shard closed slots for a slot map. The others had no events: they are
-- still closed, or were opened by a later move.
--
-- Indexes: the primary keys. Takes no lock.
CREATE FUNCTION eventsql.used_before_move_v1(p_consumer_id int, p_map_version int, p_partitions int[]) RETURNS int[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT u.partition
        FROM unnest(p_partitions) AS u (partition)
        JOIN eventsql.consumer c ON c.consumer_id = p_consumer_id
        WHERE NOT EXISTS (
            SELECT FROM eventsql.partition_barrier b
            WHERE b.stream_id = c.stream_id AND b.partition = u.partition AND b.end_offset = 9223372036854775807)
          AND NOT EXISTS (
            SELECT FROM eventsql.moved_partition m
            WHERE m.stream_id = c.stream_id AND m.partition = u.partition AND m.map_version > p_map_version));
END $$;

-- As in version 29, but partitions that were not in use when the shard closed slots are not waited for: nothing opens them, or a
-- later move does.
CREATE OR REPLACE FUNCTION eventsql.has_handled_v1(
    p_consumer_id int, p_shard int, p_map_version int, p_partitions int[], p_ends bigint[]) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    seeks bigint := eventsql.seeks_v1(p_consumer_id, p_shard);
    used  int[] := eventsql.used_before_move_v1(p_consumer_id, p_map_version, p_partitions);
BEGIN
    -- An empty partition counts, too: its keys may have moved here and on without an event. Only what moved here before counts:
    -- versions fall along a chain of shards that wait, so it has an end.
    IF EXISTS (SELECT FROM eventsql.held_by_shards_v1(p_consumer_id) s WHERE s.map_version < p_map_version)
        OR EXISTS (SELECT FROM eventsql.held_partitions_v1(p_consumer_id) h WHERE h.partition = ANY (used))
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

-- giver: the shard from which the key has moved here, and where earlier events of it are parked as far as this shard knows. They are
-- redriven first. NULL: there are none.
ALTER TABLE eventsql.parked_key ADD COLUMN giver int;
CREATE INDEX parked_key_of_giver ON eventsql.parked_key (consumer_id, giver) WHERE giver IS NOT NULL; -- mostly empty

-- The shard that receives each of the slots; NULL: the version of this schema was lower when they were closed.
ALTER TABLE eventsql.closed_slots ADD COLUMN receivers smallint[];

CREATE FUNCTION eventsql.record_receivers_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    NEW.receivers := (
        SELECT array_agg(m.slot_map[u.slot + 1] ORDER BY u.number)
        FROM eventsql.shard_move m CROSS JOIN unnest(NEW.slots) WITH ORDINALITY AS u (slot, number)
        WHERE m.map_version = NEW.map_version);
    RETURN NEW;
END $$;
CREATE TRIGGER record_receivers BEFORE INSERT ON eventsql.closed_slots
    FOR EACH ROW EXECUTE FUNCTION eventsql.record_receivers_v1();

-- Returns the keys of a consumer that are parked in some partitions of this shard, which has given slots away, or for which it waits
-- itself. Called after has_handled_v1, in a later statement: from then on no other key that has moved is parked here.
--
-- Indexes: the primary keys and parked_event_of_key. Locks the rows of parked_key that it inserts, because they are missing.
CREATE FUNCTION eventsql.keys_to_move_v1(p_consumer_id int, p_map_version int, p_partitions int[]) RETURNS SETOF text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    used int[] := eventsql.used_before_move_v1(p_consumer_id, p_map_version, p_partitions);
BEGIN
    PERFORM eventsql.parked_keys_v1(p_consumer_id, used);
    RETURN QUERY
    SELECT DISTINCT k.key
    FROM eventsql.parked_key k
    WHERE k.consumer_id = p_consumer_id AND k.partition = ANY (used)
      -- One that is to be redriven is freed when no handler has an event of it any more, dropped or not.
      AND (k.redrive OR k.giver IS NOT NULL OR EXISTS (
          SELECT FROM eventsql.parked_event e
          WHERE e.consumer_id = k.consumer_id AND e.partition = k.partition AND e.key_hash = k.key_hash
            AND e.dead_letter_offset IS NULL));
END $$;

-- Returns what a consumer must have handled on other shards, as far as no member has reported that it has, or a key is parked because
-- it was parked there.
--
-- Indexes: the primary keys, parked_key_of_giver. Takes no lock.
CREATE FUNCTION eventsql.awaited_of_shards_v2(p_consumer_id int)
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
    FROM (
        SELECT h.giver, h.map_version FROM eventsql.held_by_shards_v1(p_consumer_id) h
        UNION
        SELECT k.giver, m.map_version
        FROM eventsql.parked_key k
        JOIN eventsql.consumer o USING (consumer_id)
        JOIN eventsql.moved_partition m ON m.stream_id = o.stream_id AND m.partition = k.partition
        WHERE k.consumer_id = p_consumer_id AND k.giver IS NOT NULL) h
    JOIN eventsql.consumer c ON c.consumer_id = p_consumer_id
    JOIN eventsql.shard_barrier b
      ON b.stream_id = c.stream_id AND b.map_version = h.map_version AND b.giver = h.giver
    ORDER BY b.map_version, b.giver, b.giver_partition;
END $$;

-- Records that a consumer has handled what a shard had to be handled of, and which of the keys that have moved here are still parked
-- there. Until now no member had the partitions that received them: from now on the keys are parked here, too. Keys that were parked
-- here because of that shard, and are not parked there any more, are redriven. Says whether the report counts, which it does not if
-- the consumer has been moved there since p_seeks was read, and whether it has changed something.
--
-- p_keys: all of them. p_hashes: the hash of each (KeyHash), whose low bits are the slot, as its high bits are in the maps of streams.
--
-- Indexes: the primary keys, parked_key_of_giver. Locks the consumer's row, but not against foreign keys, so it never waits for
-- heartbeats; then rows of parked_key, in the order of their primary key.
CREATE FUNCTION eventsql.pass_shard_v2(
    p_consumer_id int, p_map_version int, p_giver int, p_seeks bigint, p_keys text[], p_hashes bigint[],
    OUT accepted boolean, OUT changed boolean)
LANGUAGE plpgsql
SET lock_timeout = '2s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    stream int;
    map    record;
BEGIN
    accepted := false;
    changed := false;
    SELECT c.stream_id INTO stream FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    IF NOT FOUND OR eventsql.seeks_v1(p_consumer_id, p_giver) > p_seeks THEN
        RETURN;
    END IF;
    accepted := true;
    PERFORM FROM eventsql.parked_key k
    WHERE k.consumer_id = p_consumer_id AND k.giver = p_giver
    ORDER BY k.partition, k.key_hash FOR NO KEY UPDATE;
    UPDATE eventsql.parked_key k SET giver = NULL, redrive = true
    FROM eventsql.moved_partition m
    WHERE k.consumer_id = p_consumer_id AND k.giver = p_giver
      AND m.stream_id = stream AND m.partition = k.partition AND m.map_version = p_map_version
      AND k.key NOT IN (SELECT u.key FROM unnest(p_keys) AS u (key));
    changed := FOUND;
    INSERT INTO eventsql.shard_barrier_passed (consumer_id, map_version, giver)
    VALUES (p_consumer_id, p_map_version, p_giver)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN; -- members have the partitions, and know what is parked there
    END IF;
    changed := true;
    -- The map of this move, not a later one: the keys may have moved on.
    SELECT l.partitions, l.slots, l.moved INTO STRICT map
    FROM eventsql.stream_placement l
    WHERE l.stream_id = stream AND l.cluster_version = p_map_version
    ORDER BY l.map_version LIMIT 1;
    INSERT INTO eventsql.parked_key AS known (consumer_id, partition, key, giver)
    SELECT p_consumer_id, m.partition, p.key, p_giver
    FROM (
        SELECT u.key, CASE
            WHEN map.moved[(u.hash & 1023) + 1] >= 0 THEN map.moved[(u.hash & 1023) + 1]
            WHEN map.slots IS NULL THEN (u.hash >> 32 & 4294967295) % map.partitions
            ELSE map.slots[(u.hash >> 32 & 4294967295) % cardinality(map.slots) + 1]
            END AS partition
        FROM unnest(p_keys, p_hashes) AS u (key, hash)) p
    JOIN eventsql.moved_partition m
      ON m.stream_id = stream AND m.partition = p.partition AND m.map_version = p_map_version
    ORDER BY m.partition, eventsql.key_hash_v1(p.key)
    ON CONFLICT (consumer_id, partition, key_hash) DO UPDATE SET giver = excluded.giver;
END $$;

-- As in version 25, but events of a key also wait for those that are parked on the shard from which it has moved.
CREATE OR REPLACE FUNCTION eventsql.is_parked_before_v1(p_consumer_id int, p_partition int, p_key_hash bytea) RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM eventsql.parked_key k
        WHERE k.consumer_id = p_consumer_id AND k.partition = p_partition AND k.key_hash = p_key_hash
          AND k.giver IS NOT NULL)
        OR EXISTS (
        WITH RECURSIVE giver AS (
            SELECT b.stream_id, b.giver
            FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
            WHERE c.consumer_id = p_consumer_id AND b.partition = p_partition
            UNION
            SELECT b.stream_id, b.giver
            FROM giver g JOIN eventsql.partition_barrier b ON b.stream_id = g.stream_id AND b.partition = g.giver
        )
        SELECT FROM giver g
        JOIN eventsql.parked_event e ON e.consumer_id = p_consumer_id AND e.partition = g.giver AND e.key_hash = p_key_hash
        WHERE e.dead_letter_offset IS NULL);
END $$;

-- As in version 29, but parked keys hold nothing back but their own events.
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
            SELECT format('waits until the consumer has handled partition %s of shard %s up to offset %s',
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

-- As in version 29, but a shard is not removed while keys are parked on it because they are parked on a former one.
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

-- As in version 29; no key waits for the shard any more, either: nothing was parked there.
CREATE OR REPLACE FUNCTION eventsql.forget_shard_v1(p_shard int) RETURNS void
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
    UPDATE eventsql.parked_key k SET giver = NULL, redrive = true WHERE k.giver = p_shard;
END $$;

REVOKE ALL ON FUNCTION eventsql.record_receivers_v1 FROM PUBLIC;
