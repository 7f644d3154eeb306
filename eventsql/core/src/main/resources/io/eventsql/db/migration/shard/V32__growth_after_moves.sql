-- EventSQL: streams grow after keys have moved between shards, too, and partitions that stayed empty pass on what they wait for
-- (decision 48).

INSERT INTO eventsql.schema_version (version, description) VALUES (32, 'growth after moves');

SET LOCAL lock_timeout = '3s';

-- A partition without events had no barrier set for the keys that it gave away. But it may wait for others itself, where earlier
-- events of these keys are.
INSERT INTO eventsql.partition_barrier (stream_id, partition, giver, end_offset)
SELECT DISTINCT m.stream_id, u.receiver, u.giver, 0
FROM eventsql.stream_map m
CROSS JOIN LATERAL (
    SELECT f.slots FROM eventsql.stream_map f
    WHERE f.stream_id = m.stream_id AND f.map_version < m.map_version
    ORDER BY f.map_version DESC LIMIT 1) former
CROSS JOIN LATERAL unnest(m.slots, former.slots) AS u (receiver, giver)
WHERE m.map_version < 2147483647 AND u.receiver <> u.giver
ON CONFLICT DO NOTHING;

-- Gives a stream another map, in one transaction: under the locks that every append takes first, it reads the ends of the
-- partitions that give keys away, stores the barriers of those that receive them, and raises the version of the map. Before
-- the commit nothing has changed, afterwards everything has. On a shard without slots nothing is opened: the next move uses the
-- partitions of the map.
--
-- p_former: the version that the caller has seen. p_slots: the partition of each slot. p_moved: the partition of each key slot, -1:
-- as p_slots says; NULL: all are as p_slots says.
--
-- Indexes: the primary keys, producer_batch_head. Locks the row of shard in share mode, then those of all partitions of the stream,
-- in their order.
--
-- Errors: ES001 the map has another version; ES003 the transaction is not READ COMMITTED; ES024 a partition has no table yet;
-- ES025 a partition is in use already; ES028 keys are being moved between shards.
CREATE FUNCTION eventsql.grow_stream_v2(p_stream_id int, p_former int, p_slots smallint[], p_moved smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' -- publishers wait for the rows that are locked already
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    stored_version int;
    former         record;
    former_slots   smallint[];
    has_moved      boolean;
    first_new      int;
    last_used      int := (SELECT max(u) FROM unnest(p_slots || p_moved) AS u);
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'growth requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM FROM eventsql.shard s FOR SHARE;
    IF NOT EXISTS (
        SELECT FROM eventsql.stationary_stream k JOIN eventsql.stream s ON s.name = k.stream WHERE s.stream_id = p_stream_id)
        AND (EXISTS (SELECT FROM eventsql.shard_move) OR EXISTS (SELECT FROM eventsql.shard s WHERE s.former_slot_map IS NOT NULL))
    THEN
        RAISE EXCEPTION 'keys are being moved between shards; complete or cancel that before the stream grows'
            USING ERRCODE = 'ES028';
    END IF;
    PERFORM FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id ORDER BY p.partition FOR UPDATE;
    -- New statements see what was appended before the locks were granted.
    SELECT p.map_version INTO STRICT stored_version
    FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id AND p.partition = 0;
    SELECT * INTO STRICT former FROM eventsql.current_map_v1(p_stream_id);
    IF former.map_version <> abs(p_former) THEN
        RAISE EXCEPTION 'map version is %, not %', former.map_version, p_former USING ERRCODE = 'ES001';
    END IF;
    former_slots := coalesce(former.slots, ARRAY(
        SELECT (n % former.partitions)::smallint FROM generate_series(0, cardinality(p_slots) - 1) AS n));
    IF cardinality(former_slots) <> cardinality(p_slots) OR (former.moved IS NULL) <> (p_moved IS NULL) THEN
        RAISE EXCEPTION 'a map of stream % has % slots', p_stream_id, cardinality(former_slots) USING ERRCODE = '22023';
    END IF;
    IF EXISTS (
        SELECT FROM generate_series(0, last_used) AS p
        WHERE NOT EXISTS (SELECT FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = p))
    THEN
        RAISE EXCEPTION 'a partition of the new map has no table yet' USING ERRCODE = 'ES024';
    END IF;
    -- A consumer may own a partition that was not closed when it was added.
    first_new := CASE WHEN stored_version < 0 THEN 0 ELSE (SELECT max(u) + 1 FROM unnest(former_slots || former.moved) AS u) END;
    IF EXISTS (
        SELECT FROM generate_series(first_new, last_used) AS p
        WHERE NOT EXISTS (
            SELECT FROM eventsql.partition_barrier b
            WHERE b.stream_id = p_stream_id AND b.partition = p AND b.end_offset = 9223372036854775807))
    THEN
        RAISE EXCEPTION 'a partition of the new map is in use already' USING ERRCODE = 'ES025';
    END IF;
    IF stored_version > 0 THEN
        DELETE FROM eventsql.partition_barrier b
        WHERE b.stream_id = p_stream_id AND b.partition BETWEEN first_new AND last_used
          AND b.end_offset = 9223372036854775807;
        -- Also of an empty giver: earlier events of its keys may be in partitions, or on shards, for which it waits itself.
        INSERT INTO eventsql.partition_barrier AS known (stream_id, partition, giver, end_offset)
        SELECT p_stream_id, m.receiver, m.giver, h.next_offset
        FROM (
            SELECT u.receiver, u.giver FROM unnest(p_slots, former_slots) AS u (receiver, giver)
            UNION
            SELECT u.receiver, u.giver FROM unnest(p_moved, former.moved) AS u (receiver, giver)) m
        CROSS JOIN LATERAL (
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = p_stream_id AND b.partition = m.giver
            ORDER BY b.next_offset DESC LIMIT 1) h
        WHERE m.receiver <> m.giver
        ON CONFLICT (stream_id, partition, giver) DO UPDATE SET end_offset = excluded.end_offset;
    END IF;
    IF EXISTS (SELECT FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id) THEN
        INSERT INTO eventsql.stream_placement (stream_id, map_version, cluster_version, partitions, slots, moved)
        SELECT p_stream_id, former.map_version + 1, max(l.cluster_version), last_used + 1, p_slots, p_moved
        FROM eventsql.stream_placement l WHERE l.stream_id = p_stream_id;
    ELSE
        -- The map that every stream begins with.
        INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
        SELECT p_stream_id, former.map_version, former.partitions, former_slots
        WHERE NOT EXISTS (SELECT FROM eventsql.stream_map m WHERE m.stream_id = p_stream_id);
        INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
        VALUES (p_stream_id, former.map_version + 1, last_used + 1, p_slots);
    END IF;
    UPDATE eventsql.stream_partition p SET map_version = sign(stored_version)::int * (former.map_version + 1)
    WHERE p.stream_id = p_stream_id;
END $$;

-- As in version 25, but for what grow_stream_v2 does: processes of the previous release call it.
CREATE OR REPLACE FUNCTION eventsql.grow_stream_v1(p_stream_id int, p_former int, p_slots smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $$
BEGIN
    PERFORM eventsql.grow_stream_v2(p_stream_id, p_former, p_slots, NULL);
END $$;

-- As in version 29, but no partition that the map names: on a shard without slots these are closed, too.
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
    IF EXISTS (SELECT FROM eventsql.current_map_v1(p_stream_id) m WHERE m.partitions > last_partition)
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

-- As in version 30. A partition that a growth has opened since was not in use, either.
CREATE OR REPLACE FUNCTION eventsql.used_before_move_v1(p_consumer_id int, p_map_version int, p_partitions int[]) RETURNS int[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    used_then int;
    used_now  int;
BEGIN
    SELECT l.partitions, m.partitions INTO used_then, used_now
    FROM eventsql.consumer c
    CROSS JOIN LATERAL eventsql.current_map_v1(c.stream_id) m
    CROSS JOIN LATERAL (
        SELECT g.partitions FROM eventsql.stream_placement g
        WHERE g.stream_id = c.stream_id AND g.cluster_version = p_map_version
        ORDER BY g.map_version LIMIT 1) l
    WHERE c.consumer_id = p_consumer_id;
    RETURN ARRAY(
        SELECT u.partition
        FROM unnest(p_partitions) AS u (partition)
        JOIN eventsql.consumer c ON c.consumer_id = p_consumer_id
        LEFT JOIN eventsql.moved_partition m ON m.stream_id = c.stream_id AND m.partition = u.partition
        WHERE coalesce(m.map_version <= p_map_version, true)
          AND (m.map_version IS NOT NULL OR (u.partition >= used_then AND u.partition < used_now) IS NOT TRUE)
          AND NOT EXISTS (
            SELECT FROM eventsql.partition_barrier b
            WHERE b.stream_id = c.stream_id AND b.partition = u.partition AND b.end_offset = 9223372036854775807));
END $$;

-- As in version 30, but events of a key also wait if the key has moved from its former shard to a giver of their partition.
CREATE OR REPLACE FUNCTION eventsql.is_parked_before_v1(p_consumer_id int, p_partition int, p_key_hash bytea) RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
BEGIN
    RETURN EXISTS (
        WITH RECURSIVE giver AS (
            SELECT c.stream_id, p_partition AS giver FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id
            UNION
            SELECT b.stream_id, b.giver
            FROM giver g JOIN eventsql.partition_barrier b ON b.stream_id = g.stream_id AND b.partition = g.giver
        )
        SELECT FROM giver g
        WHERE EXISTS (
            SELECT FROM eventsql.parked_key k
            WHERE k.consumer_id = p_consumer_id AND k.partition = g.giver AND k.key_hash = p_key_hash AND k.giver IS NOT NULL)
           OR g.giver <> p_partition AND EXISTS (
            SELECT FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = g.giver AND e.key_hash = p_key_hash
              AND e.dead_letter_offset IS NULL));
END $$;

-- As in version 25, but what the partitions wait for is read once after all rows are locked, not for each of them: that took seconds
-- with hundreds of partitions.
CREATE OR REPLACE FUNCTION eventsql.take_partitions_v1(
    p_incarnation text, p_consumer_id int, p_member_id uuid, p_lease interval, p_max_partitions int,
    p_excluded int[])
RETURNS TABLE (partition int, epoch bigint, next_offset bigint)
LANGUAGE plpgsql
SET lock_timeout = '500ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    locked  int[];
    formers uuid[];
    held    int[];
    taken   record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    PERFORM eventsql.do_not_await_replicas_v1();
    held := ARRAY(SELECT h.partition FROM eventsql.held_partitions_v1(p_consumer_id) h);
    SELECT array_agg(f.partition), array_agg(f.former) INTO locked, formers
    FROM (
        SELECT p.partition, p.member_id AS former
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.state = 'running' AND p.partition <> ALL (p_excluded)
          AND p.partition <> ALL (held)
          AND (p.member_id IS NULL OR p.member_id = p_member_id OR p.expires_at <= clock_timestamp())
        ORDER BY random() LIMIT p_max_partitions -- one that cannot be taken must not block the others forever
        FOR NO KEY UPDATE SKIP LOCKED) f;
    -- Again, because a partition may have been added, or the consumer moved, before the rows were locked. A seek locks all rows of
    -- the consumer first.
    IF locked IS NOT NULL THEN
        held := ARRAY(SELECT h.partition FROM eventsql.held_partitions_v1(p_consumer_id) h);
    END IF;
    FOR taken IN
        SELECT u.partition, u.former FROM unnest(locked, formers) AS u (partition, former) WHERE u.partition <> ALL (held)
    LOOP
        IF taken.former IS NOT NULL THEN
            PERFORM eventsql.terminate_handling_v1(p_consumer_id, taken.partition);
        END IF;
        BEGIN
            SELECT r.new_epoch, r.new_offset INTO epoch, next_offset
            FROM eventsql.raise_epoch_v1(p_consumer_id, taken.partition, NULL) r;
        EXCEPTION WHEN lock_not_available THEN
            EXIT; -- a transaction that could not be terminated is still committing an offset: the next call retries
        END;
        UPDATE eventsql.consumer_partition p
        SET member_id = p_member_id, expires_at = clock_timestamp() + p_lease, error = NULL
        WHERE p.consumer_id = p_consumer_id AND p.partition = taken.partition;
        partition := taken.partition;
        RETURN NEXT;
    END LOOP;
    DELETE FROM eventsql.consumer_member m
    WHERE m.consumer_id = p_consumer_id AND m.member_id IN (
        SELECT o.member_id FROM eventsql.consumer_member o
        WHERE o.consumer_id = p_consumer_id AND o.expires_at < clock_timestamp() - 10 * p_lease
        FOR UPDATE SKIP LOCKED); -- a locked one is alive: its heartbeat may wait for a partition locked here
END $$;

-- As in version 30, but names what a partition waits for that waits for another one.
CREATE OR REPLACE FUNCTION eventsql.waits_for_v1(p_stream text, p_consumer text, p_partition int) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    id     int;
    reason text;
BEGIN
    SELECT c.consumer_id INTO id
    FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id)
    WHERE s.name = p_stream AND c.name = p_consumer;
    WITH RECURSIVE held AS MATERIALIZED (
        SELECT h.partition, h.giver, h.next_offset, h.end_offset FROM eventsql.held_partitions_v1(id) h
    ), cause AS (
        SELECT h.partition, h.giver, h.next_offset, h.end_offset FROM held h WHERE h.partition = p_partition
        UNION
        SELECT h.partition, h.giver, h.next_offset, h.end_offset FROM cause c JOIN held h ON h.partition = c.giver
    )
    SELECT CASE
        WHEN w.giver = -1 THEN (
            SELECT format('waits until the consumer has handled partition %s of shard %s up to offset %s',
                          b.giver_partition, (SELECT i.shard_names[b.giver + 1] FROM eventsql.shard i), b.end_offset)
            FROM eventsql.held_by_shards_v1(id) h
            JOIN eventsql.consumer c ON c.consumer_id = id
            JOIN eventsql.shard_barrier b
              ON b.stream_id = c.stream_id AND b.map_version = h.map_version AND b.giver = h.giver
            WHERE h.partition = w.partition
            ORDER BY b.map_version DESC, b.giver, b.giver_partition LIMIT 1)
        WHEN w.end_offset = 9223372036854775807 THEN 'is being added to the stream'
        ELSE format('waits until partition %s was handled up to offset %s; it is %s at offset %s',
                    w.giver, w.end_offset, g.state, w.next_offset) END
    INTO reason
    FROM cause w
    LEFT JOIN eventsql.consumer_partition g ON g.consumer_id = id AND g.partition = w.giver
    WHERE w.giver = -1 OR w.next_offset < w.end_offset
    ORDER BY w.partition <> p_partition, w.giver <> -1, g.state = 'running', w.giver
    LIMIT 1;
    RETURN reason;
END $$;

REVOKE ALL ON FUNCTION eventsql.grow_stream_v2 FROM PUBLIC;
