-- EventSQL: functions of the members of a consumer: heartbeat with fair shares, taking, releasing and moving partitions.

INSERT INTO eventsql.schema_version (version, description) VALUES (6, 'lease functions');

-- Lets the caller's transaction commit without waiting for synchronous replicas: the one thread that keeps the leases of
-- a process must not wait for a missing replica. A lease that a failover loses is renewed or taken again, and the epoch
-- and the offset fence it as always. In the body, because a SET clause would be undone before the commit.
CREATE FUNCTION eventsql.do_not_await_replicas_v1() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('synchronous_commit') <> 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
END $$;

-- Shortens leases of these consumers that end far later than one that begins now: the database's clock was set back
-- after they were renewed. A member that lives renews in time; without this, one that died would keep its partitions
-- until the clock is again where it was. Another member's lease may be longer than p_lease, but not ten times.
CREATE FUNCTION eventsql.bound_leases_v1(p_consumer_ids int[], p_lease interval) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    latest timestamptz := clock_timestamp() + 10 * p_lease;
BEGIN
    -- By the primary keys. A row that is locked is being renewed or taken.
    UPDATE eventsql.consumer_member m SET expires_at = clock_timestamp() + p_lease
    WHERE m.ctid = ANY (ARRAY(
        SELECT o.tid
        FROM unnest(p_consumer_ids) AS b (consumer_id)
        CROSS JOIN LATERAL (
            SELECT r.ctid AS tid FROM eventsql.consumer_member r
            WHERE r.consumer_id = b.consumer_id AND r.expires_at > latest
            FOR NO KEY UPDATE SKIP LOCKED) o));
    UPDATE eventsql.consumer_partition p SET expires_at = clock_timestamp() + p_lease
    WHERE p.ctid = ANY (ARRAY(
        SELECT o.tid
        FROM unnest(p_consumer_ids) AS b (consumer_id)
        CROSS JOIN LATERAL (
            SELECT r.ctid AS tid FROM eventsql.consumer_partition r
            WHERE r.consumer_id = b.consumer_id AND r.expires_at > latest
            FOR NO KEY UPDATE SKIP LOCKED) o));
END $$;

-- One heartbeat of all members of a process: renews the members and the leases of the partitions that they hold, in a
-- constant number of statements. p_held has the partitions of each member as an array in text form.
-- Returns no row for a consumer that was deleted, and otherwise for each member:
--   member          its position in p_members, from 1
--   renewed         the partitions whose leases it still has
--   revoked         those of them that it must release, because the partition is paused or stopped
--   to_redrive      those with parked events to redrive
--   share           its fair share: how many of the consumer's running partitions it should hold on this shard. Shares
--                   differ by one at most, except that no member gets more than its maximum; the others get what that
--                   leaves. Which members get one more depends on the shard, so that a member does not get one more on
--                   every shard
--   free            how many partitions have no holder. A partition that names the member but is missing in p_held
--                   counts, too: the reply to its take was lost
--   next_expiry_ms  the time until the next lease of another member expires
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.heartbeat_v1(
    p_incarnation text, p_shard int, p_lease interval, p_consumer_ids int[], p_members uuid[], p_names text[],
    p_max_partitions int[], p_held text[])
RETURNS TABLE (
    member int, renewed int[], revoked int[], to_redrive int[], share int, free int, next_expiry_ms bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    held_rows  tid[];
    checked_at timestamptz;
BEGIN
    -- Less than the time that a member waits for the reply, which is at least a quarter of the lease.
    PERFORM set_config('lock_timeout', least(2000, ceil(extract(epoch FROM p_lease) * 200))::int::text, true);
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    PERFORM eventsql.do_not_await_replicas_v1();

    INSERT INTO eventsql.consumer_member AS m (consumer_id, member_id, name, max_partitions, expires_at)
    SELECT c.consumer_id, b.member_id, b.name, b.max_partitions, clock_timestamp() + p_lease
    FROM unnest(p_consumer_ids, p_members, p_names, p_max_partitions) AS b (consumer_id, member_id, name, max_partitions)
    CROSS JOIN LATERAL (SELECT o.consumer_id FROM eventsql.consumer o WHERE o.consumer_id = b.consumer_id OFFSET 0) c
    ON CONFLICT ON CONSTRAINT consumer_member_pkey
    DO UPDATE SET expires_at = excluded.expires_at, max_partitions = excluded.max_partitions;

    -- In the lock order of all statements. LATERAL, here and below: by the primary key, whatever the statistics say.
    SELECT array_agg(l.tid) INTO held_rows
    FROM (
        SELECT p.tid
        FROM (
            SELECT u.consumer_id, u.member_id, u.held::int[] AS held
            FROM unnest(p_consumer_ids, p_members, p_held) AS u (consumer_id, member_id, held)
            ORDER BY u.consumer_id, u.member_id) b
        CROSS JOIN LATERAL (
            SELECT o.ctid AS tid
            FROM eventsql.consumer_partition o
            WHERE o.consumer_id = b.consumer_id AND o.partition = ANY (b.held) AND o.member_id = b.member_id
            ORDER BY o.partition FOR NO KEY UPDATE) p) l;
    UPDATE eventsql.consumer_partition p SET expires_at = clock_timestamp() + p_lease
    WHERE p.ctid = ANY (held_rows);
    PERFORM eventsql.bound_leases_v1(p_consumer_ids, p_lease); -- last: it locks what others hold, without waiting

    checked_at := clock_timestamp();
    RETURN QUERY
    WITH beat AS MATERIALIZED (
        SELECT b.member, b.consumer_id, b.member_id, b.held::int[] AS held
        FROM unnest(p_consumer_ids, p_members, p_held) WITH ORDINALITY AS b (consumer_id, member_id, held, member)
    ), found AS MATERIALIZED (
        SELECT b.*, p.*
        FROM beat b
        CROSS JOIN LATERAL (SELECT FROM eventsql.consumer o WHERE o.consumer_id = b.consumer_id OFFSET 0) c
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(o.partition) FILTER (WHERE o.is_held), '{}') AS renewed,
                   coalesce(array_agg(o.partition) FILTER (WHERE o.is_held AND NOT o.is_running), '{}') AS revoked,
                   count(*) FILTER (WHERE o.is_running) AS partitions,
                   count(*) FILTER (WHERE o.is_running AND NOT o.is_held
                       AND (o.member_id IS NULL OR o.member_id = b.member_id OR o.expires_at <= checked_at)) AS free,
                   min(o.expires_at) FILTER (WHERE o.is_running AND o.member_id <> b.member_id
                       AND o.expires_at > checked_at) AS next_expiry
            FROM (
                SELECT r.partition, r.member_id, r.expires_at, r.state = 'running' AS is_running,
                       r.member_id IS NOT DISTINCT FROM b.member_id AND r.partition = ANY (b.held) AS is_held
                FROM eventsql.consumer_partition r
                WHERE r.consumer_id = b.consumer_id OFFSET 0) o) p
    ), living AS MATERIALIZED (
        -- level: the share of members with a greater maximum, if exactly the members with smaller ones are full.
        SELECT d.consumer_id, d.partitions, o.member_id, o.max_partitions,
               count(*) OVER of_consumer AS members,
               row_number() OVER (of_consumer ORDER BY o.joined_at, o.member_id) - 1 AS rank,
               ceil((d.partitions - coalesce(sum(o.max_partitions) OVER (
                            by_maximum ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::numeric
                    / count(*) OVER (by_maximum ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)) AS level
        FROM (SELECT DISTINCT f.consumer_id, f.partitions FROM found f) d
        CROSS JOIN LATERAL (
            SELECT m.member_id, m.max_partitions, m.joined_at
            FROM eventsql.consumer_member m
            WHERE m.consumer_id = d.consumer_id AND m.expires_at > checked_at OFFSET 0) o
        WINDOW of_consumer AS (PARTITION BY d.consumer_id),
               by_maximum AS (of_consumer ORDER BY o.max_partitions, o.member_id)
    ), leveled AS (
        SELECT l.consumer_id, l.partitions, l.member_id, l.max_partitions, l.members, l.rank,
               coalesce(max(l.level) FILTER (WHERE l.level <= l.max_partitions) OVER of_consumer, l.partitions) AS level
        FROM living l
        WINDOW of_consumer AS (PARTITION BY l.consumer_id)
    ), ranked AS (
        SELECT l.consumer_id, l.member_id, l.max_partitions, l.level,
               sum(least(l.max_partitions, l.level)) OVER (PARTITION BY l.consumer_id) - l.partitions AS too_many,
               row_number() OVER (PARTITION BY l.consumer_id, l.max_partitions >= l.level
                                  ORDER BY (l.rank + p_shard) % l.members DESC) AS ordinal
        FROM leveled l
    ), shares AS (
        SELECT r.consumer_id, r.member_id,
               least(r.max_partitions, r.level)
                   - CASE WHEN r.max_partitions >= r.level AND r.ordinal <= r.too_many THEN 1 ELSE 0 END AS share
        FROM ranked r
    )
    SELECT f.member::int, f.renewed, f.revoked,
           ARRAY(
               SELECT e.partition FROM eventsql.parked_event e
               WHERE e.consumer_id = f.consumer_id AND e.partition = ANY (f.renewed) AND e.redrive
               UNION
               SELECT k.partition FROM eventsql.parked_key k
               WHERE k.consumer_id = f.consumer_id AND k.partition = ANY (f.renewed) AND k.redrive),
           coalesce(s.share, 0)::int,
           f.free::int,
           ceil(extract(epoch FROM least(
               f.next_expiry,
               -- What is free may be the share of a member that died before it took it.
               CASE WHEN f.free > 0 THEN (
                   SELECT min(o.expires_at) FROM eventsql.consumer_member o
                   WHERE o.consumer_id = f.consumer_id AND o.member_id <> f.member_id AND o.expires_at > checked_at)
               END) - checked_at) * 1000)::bigint
    FROM found f
    LEFT JOIN shares s ON s.consumer_id = f.consumer_id AND s.member_id = f.member_id;
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
    PERFORM eventsql.do_not_await_replicas_v1();
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

-- Releases partitions, if the member still holds them: any member may take them at once.
CREATE FUNCTION eventsql.release_partitions_v1(p_consumer_id int, p_member_id uuid, p_partitions int[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '500ms'
AS $$
BEGIN
    PERFORM eventsql.do_not_await_replicas_v1();
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
