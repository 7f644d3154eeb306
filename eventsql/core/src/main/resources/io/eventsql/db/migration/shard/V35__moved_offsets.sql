-- EventSQL: consumers are moved in the lock order of offset commits (decision 52).

INSERT INTO eventsql.schema_version (version, description) VALUES (35, 'moved offsets');

-- Frees a partition whose lease row the caller has locked: its holder loses it, and the next one starts at p_next_offset, or where this
-- one was (NULL). Returns the epoch that the partition had.
--
-- Index: consumer_offset_newest and the primary key of consumer_partition. Locks the row that it deletes from consumer_offset; callers
-- that free several partitions do so in the order of the partitions, as offset commits do.
CREATE FUNCTION eventsql.free_partition_v1(p_consumer_id int, p_partition int, p_next_offset bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    raised_epoch bigint;
BEGIN
    PERFORM eventsql.terminate_handling_v1(p_consumer_id, p_partition);
    SELECT r.new_epoch INTO raised_epoch FROM eventsql.raise_epoch_v1(p_consumer_id, p_partition, p_next_offset) r;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition;
    RETURN raised_epoch - 1;
END $$;

-- Moves a consumer in some partitions and frees these: their holders lose them, and the next ones start at p_next_offsets. Frees those,
-- too, that wait again for partitions which are moved to before their ends. Returns the number of the given partitions that exist.
--
-- p_epochs: the epoch that each of the partitions must have; NULL: any. A shard that has given slots away moves a consumer to any epoch
-- only in a transaction that has called count_seek_v1, after hold_receivers_v1 on the others: the release before version 29 calls neither.
--
-- Indexes: the primary keys, consumer_offset_newest. Locks the rows of consumer_partition, then those of consumer_offset, each in the
-- order of the partitions.
--
-- Errors: ES001 keys have moved to other shards, which the caller does not know; ES007 a partition has another epoch than that of
-- p_epochs; ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.seek_v2(
    p_incarnation text, p_consumer_id int, p_partitions int[], p_next_offsets bigint[], p_epochs bigint[])
RETURNS int
LANGUAGE plpgsql
SET lock_timeout = '5s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    moved        record;
    former_epoch bigint;
    moved_count  int := 0;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    IF p_epochs IS NULL AND EXISTS (SELECT FROM eventsql.closed_slots) AND NOT EXISTS (
        SELECT FROM eventsql.consumer_seek k JOIN eventsql.shard s ON s.shard_number = k.shard
        WHERE k.consumer_id = p_consumer_id AND k.xmin = pg_current_xact_id()::xid)
    THEN
        RAISE EXCEPTION 'keys have moved to other shards, which this release of the library does not know'
            USING ERRCODE = 'ES001';
    END IF;
    -- All rows, if others may have to be freed, too: no partition is taken while it is decided whether it waits.
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND (p.partition = ANY (p_partitions) OR EXISTS (
        SELECT FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
        WHERE c.consumer_id = p_consumer_id))
    ORDER BY p.partition FOR NO KEY UPDATE;
    FOR moved IN
        WITH RECURSIVE target AS MATERIALIZED (
            SELECT u.partition, u.next_offset, u.epoch
            FROM unnest(p_partitions, p_next_offsets, p_epochs) AS u (partition, next_offset, epoch)
        ), barrier AS MATERIALIZED (
            SELECT b.partition, b.giver, b.end_offset
            FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
            WHERE c.consumer_id = p_consumer_id
        ), held AS (
            SELECT b.partition FROM target t JOIN barrier b ON b.giver = t.partition AND b.end_offset > t.next_offset
            UNION
            SELECT b.partition FROM held h JOIN barrier b ON b.giver = h.partition
        )
        SELECT p.partition, t.partition IS NOT NULL AS is_target, t.next_offset, t.epoch
        FROM eventsql.consumer_partition p
        LEFT JOIN target t ON t.partition = p.partition
        WHERE p.consumer_id = p_consumer_id
          AND (t.partition IS NOT NULL OR p.member_id IS NOT NULL AND p.partition IN (SELECT h.partition FROM held h))
        ORDER BY p.partition
    LOOP
        former_epoch := eventsql.free_partition_v1(p_consumer_id, moved.partition, moved.next_offset);
        IF moved.epoch <> former_epoch THEN
            RAISE EXCEPTION 'partition % was taken by another member', moved.partition USING ERRCODE = 'ES007';
        END IF;
        moved_count := moved_count + moved.is_target::int;
    END LOOP;
    RETURN moved_count;
END $$;

-- As in version 29, but by the function for several partitions.
CREATE OR REPLACE FUNCTION eventsql.seek_v1(
    p_incarnation text, p_consumer_id int, p_partition int, p_next_offset bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN eventsql.seek_v2(
        p_incarnation, p_consumer_id, ARRAY[p_partition], ARRAY[p_next_offset],
        CASE WHEN p_epoch IS NOT NULL THEN ARRAY[p_epoch] END) = 1;
END $$;

-- As in version 29, but frees the partitions in their order.
CREATE OR REPLACE FUNCTION eventsql.hold_receivers_v1(p_consumer_id int, p_givers int[], p_seeks bigint[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
BEGIN
    PERFORM FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id ORDER BY p.partition FOR NO KEY UPDATE;
    INSERT INTO eventsql.consumer_seek AS k (consumer_id, shard, seeks)
    SELECT p_consumer_id, g.giver, g.seeks FROM unnest(p_givers, p_seeks) AS g (giver, seeks)
    ON CONFLICT (consumer_id, shard) DO UPDATE SET seeks = greatest(k.seeks, excluded.seeks);
    DELETE FROM eventsql.shard_barrier_passed d WHERE d.consumer_id = p_consumer_id AND d.giver = ANY (p_givers);
    PERFORM eventsql.free_partition_v1(p_consumer_id, o.partition, NULL)
    FROM (
        SELECT p.partition
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.member_id IS NOT NULL
          AND p.partition IN (SELECT h.partition FROM eventsql.held_partitions_v1(p_consumer_id) h)
        ORDER BY p.partition OFFSET 0) o;
END $$;

-- As in version 32, but takes the partitions in their order. A transaction that commits the offset of one of them, and could not be
-- terminated, is waited for once: the others are taken without waiting.
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
        SELECT u.partition, u.former
        FROM unnest(locked, formers) AS u (partition, former)
        WHERE u.partition <> ALL (held)
        ORDER BY u.partition
    LOOP
        IF taken.former IS NOT NULL THEN
            PERFORM eventsql.terminate_handling_v1(p_consumer_id, taken.partition);
        END IF;
        BEGIN
            SELECT r.new_epoch, r.new_offset INTO epoch, next_offset
            FROM eventsql.raise_epoch_v1(p_consumer_id, taken.partition, NULL) r;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM set_config('lock_timeout', '1ms', true);
            CONTINUE; -- a later call takes it
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
