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
