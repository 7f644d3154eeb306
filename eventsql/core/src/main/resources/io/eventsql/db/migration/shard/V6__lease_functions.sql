-- EventSQL: functions of the members of a consumer: heartbeat, fair share, taking, releasing and moving partitions.

INSERT INTO eventsql.schema_version (version, description) VALUES (6, 'lease functions');

-- Returns how many of the consumer's running partitions a member should hold on this shard. Shares differ by one at
-- most, except that no member gets more than its maximum; the others get what that leaves. Which members get one more
-- depends on the shard, so that a member does not get one more on every shard.
CREATE FUNCTION eventsql.fair_share_v1(p_consumer_id int, p_member_id uuid, p_partitions int, p_shard int)
RETURNS int
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    members  int;
    capacity bigint;
    level    int;
BEGIN
    SELECT count(*), coalesce(sum(least(max_partitions, p_partitions)), 0) INTO members, capacity
    FROM eventsql.consumer_member WHERE consumer_id = p_consumer_id AND expires_at > clock_timestamp();
    IF members = 0 OR p_partitions = 0 THEN
        RETURN 0;
    END IF;

    level := (p_partitions + members - 1) / members;
    LOOP
        SELECT sum(least(max_partitions, level)) INTO capacity
        FROM eventsql.consumer_member WHERE consumer_id = p_consumer_id AND expires_at > clock_timestamp();
        EXIT WHEN capacity >= p_partitions OR level >= p_partitions;
        level := level + 1;
    END LOOP;

    RETURN coalesce((
        SELECT least(m.max_partitions, level)
               - CASE WHEN m.max_partitions >= level AND m.ordinal <= capacity - p_partitions THEN 1 ELSE 0 END
        FROM (
            SELECT l.*, row_number() OVER (
                       PARTITION BY l.max_partitions >= level ORDER BY (l.rank + p_shard) % members DESC) AS ordinal
            FROM (
                SELECT member_id, max_partitions, row_number() OVER (ORDER BY joined_at, member_id) - 1 AS rank
                FROM eventsql.consumer_member
                WHERE consumer_id = p_consumer_id AND expires_at > clock_timestamp()) l) m
        WHERE m.member_id = p_member_id), 0);
END $$;

-- One heartbeat of all members of a process: renews the members and the leases of the partitions that they hold.
-- Returns no row for a consumer that was deleted, and otherwise for each member:
--   member          its position in p_members, from 1
--   renewed         the partitions whose leases it still has
--   revoked         those of them that it must release, because the partition is paused or stopped
--   to_redrive      those with parked events to redrive
--   share           its fair share
--   free            how many partitions have no holder. A partition that names the member but is missing in
--                   p_held_partitions counts, too: the reply to its take was lost
--   next_expiry_ms  the time until the next lease of another member expires
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.heartbeat_v1(
    p_incarnation text, p_shard int, p_lease interval, p_consumer_ids int[], p_members uuid[], p_names text[],
    p_max_partitions int[], p_held_members int[], p_held_partitions int[])
RETURNS TABLE (
    member int, renewed int[], revoked int[], to_redrive int[], share int, free int, next_expiry_ms bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    held       int[];
    partitions int;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR i IN 1 .. cardinality(p_members) LOOP
        INSERT INTO eventsql.consumer_member AS m (consumer_id, member_id, name, max_partitions, expires_at)
        SELECT c.consumer_id, p_members[i], p_names[i], p_max_partitions[i], clock_timestamp() + p_lease
        FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_ids[i]
        ON CONFLICT ON CONSTRAINT consumer_member_pkey
        DO UPDATE SET expires_at = clock_timestamp() + p_lease, max_partitions = excluded.max_partitions;
        CONTINUE WHEN NOT FOUND;

        held := ARRAY(SELECT h.p FROM unnest(p_held_members, p_held_partitions) AS h (m, p) WHERE h.m = i);
        PERFORM FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_ids[i] AND p.partition = ANY (held) AND p.member_id = p_members[i]
        ORDER BY p.partition FOR NO KEY UPDATE;
        WITH updated AS (
            UPDATE eventsql.consumer_partition p SET expires_at = clock_timestamp() + p_lease
            WHERE p.consumer_id = p_consumer_ids[i] AND p.partition = ANY (held) AND p.member_id = p_members[i]
            RETURNING p.partition, p.state)
        SELECT coalesce(array_agg(u.partition), '{}'),
               coalesce(array_agg(u.partition) FILTER (WHERE u.state <> 'running'), '{}')
        INTO renewed, revoked FROM updated u;

        to_redrive := ARRAY(
            SELECT r.partition FROM eventsql.parked_event r
            WHERE r.consumer_id = p_consumer_ids[i] AND r.partition = ANY (held) AND r.redrive
            UNION
            SELECT r.partition FROM eventsql.parked_key r
            WHERE r.consumer_id = p_consumer_ids[i] AND r.partition = ANY (held) AND r.redrive);

        SELECT count(*),
               count(*) FILTER (WHERE p.member_id IS NULL OR p.expires_at <= clock_timestamp()
                   OR (p.member_id = p_members[i] AND p.partition <> ALL (held))),
               ceil(extract(epoch FROM min(p.expires_at) FILTER (
                   WHERE p.member_id <> p_members[i] AND p.expires_at > clock_timestamp()) - clock_timestamp()) * 1000)
        INTO partitions, free, next_expiry_ms
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_ids[i] AND p.state = 'running';
        IF free > 0 THEN
            -- They may be the share of a member that died before it took them.
            next_expiry_ms := least(next_expiry_ms, (
                SELECT ceil(extract(epoch FROM min(o.expires_at) - clock_timestamp()) * 1000)
                FROM eventsql.consumer_member o
                WHERE o.consumer_id = p_consumer_ids[i] AND o.member_id <> p_members[i]
                  AND o.expires_at > clock_timestamp()));
        END IF;
        share := eventsql.fair_share_v1(p_consumer_ids[i], p_members[i], partitions, p_shard);
        member := i;
        RETURN NEXT;
    END LOOP;
END $$;

-- Takes up to p_max_partitions free partitions, none of p_excluded: raises their epochs, which fences out former
-- holders, and returns where to start. Waits only for transactions that are committing an offset.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.take_partitions_v1(
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
    taken record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR taken IN
        SELECT p.partition, p.member_id AS former
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.state = 'running' AND p.partition <> ALL (p_excluded)
          AND (p.member_id IS NULL OR p.member_id = p_member_id OR p.expires_at <= clock_timestamp())
        ORDER BY random() LIMIT p_max_partitions -- one that cannot be taken must not block the others forever
        FOR NO KEY UPDATE SKIP LOCKED
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
        SET member_id = p_member_id, expires_at = clock_timestamp() + p_lease
        WHERE p.consumer_id = p_consumer_id AND p.partition = taken.partition;
        partition := taken.partition;
        RETURN NEXT;
    END LOOP;
    DELETE FROM eventsql.consumer_member m
    WHERE m.consumer_id = p_consumer_id AND m.expires_at < clock_timestamp() - 10 * p_lease;
END $$;

-- Releases partitions, if the member still holds them: any member may take them at once.
CREATE FUNCTION eventsql.release_partitions_v1(p_consumer_id int, p_member_id uuid, p_partitions int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND p.partition = ANY (p_partitions) AND p.member_id = p_member_id
    ORDER BY p.partition FOR NO KEY UPDATE;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = ANY (p_partitions) AND p.member_id = p_member_id;
END $$;

-- Moves a consumer in one partition and frees it: its holder loses it, and the next one starts at p_next_offset. With
-- p_epoch only if that is still the epoch. Returns false if there is no such partition.
--
-- Errors: ES007 the partition has another epoch than p_epoch; ES011 the database has another incarnation than
-- p_incarnation.
CREATE FUNCTION eventsql.seek_v1(
    p_incarnation text, p_consumer_id int, p_partition int, p_next_offset bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
DECLARE
    former_epoch bigint;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition FOR NO KEY UPDATE;
    PERFORM eventsql.terminate_handling_v1(p_consumer_id, p_partition);
    SELECT r.new_epoch - 1 INTO former_epoch
    FROM eventsql.raise_epoch_v1(p_consumer_id, p_partition, p_next_offset) r;
    IF former_epoch <> p_epoch THEN
        RAISE EXCEPTION 'partition % was taken by another member', p_partition USING ERRCODE = 'ES007';
    END IF;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition;
    RETURN FOUND;
END $$;
