-- EventSQL: functions that find, commit and move the offsets of consumers.

INSERT INTO eventsql.schema_version (version, description) VALUES (5, 'offset functions');

-- Returns the first offset of a partition whose event was published at p_time or later; the head if there is none. A
-- binary search, because published_at never runs backwards within a partition. Where the middle is missing from the
-- log, the next event that exists takes its place.
CREATE FUNCTION eventsql.offset_at_v1(p_stream text, p_partition int, p_time timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    low       bigint;
    high      bigint;
    middle    bigint;
    size      bigint;
    result    bigint;
    probed    bigint;
    found     bigint;
    published timestamptz;
    segment   text;
BEGIN
    SELECT h.log_start, h.next_offset, s.segment_size INTO STRICT low, high, size
    FROM eventsql.partition_head h JOIN eventsql.stream s ON s.name = h.stream
    WHERE h.stream = p_stream AND h.partition = p_partition;
    result := high;
    WHILE low < high LOOP
        middle := low + (high - low) / 2;
        probed := middle;
        found := NULL;
        WHILE found IS NULL AND probed < high LOOP
            segment := format('eventsql.%I',
                'events_' || p_stream || '__p' || p_partition || '_s' || probed / size);
            IF to_regclass(segment) IS NOT NULL THEN
                EXECUTE format(
                    'SELECT event_offset, published_at FROM %s WHERE event_offset >= $1 AND event_offset < $2'
                    ' ORDER BY event_offset LIMIT 1', segment)
                INTO found, published USING probed, high;
            END IF;
            probed := (probed / size + 1) * size;
        END LOOP;
        IF found IS NULL THEN
            high := middle;
        ELSIF published < p_time THEN
            low := found + 1;
        ELSE
            result := found;
            high := middle;
        END IF;
    END LOOP;
    RETURN result;
END $$;

-- Replaces the newest offset row of a partition: raises the epoch, and moves the offset if p_next_offset is given.
-- Waits for a commit in progress and includes it. Returns the new epoch and offset.
CREATE FUNCTION eventsql.raise_epoch_v1(
    p_consumer_id int, p_partition int, p_next_offset bigint, OUT new_epoch bigint, OUT new_offset bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    newest record;
BEGIN
    LOOP
        SELECT ctid AS tid, o.* INTO STRICT newest
        FROM eventsql.consumer_offset o
        WHERE consumer_id = p_consumer_id AND partition = p_partition
        ORDER BY commit_number DESC LIMIT 1;
        DELETE FROM eventsql.consumer_offset
        WHERE ctid = newest.tid AND consumer_id = p_consumer_id AND partition = p_partition
          AND commit_number = newest.commit_number;
        EXIT WHEN FOUND;
    END LOOP;
    new_epoch := newest.epoch + 1;
    new_offset := coalesce(p_next_offset, newest.next_offset);
    INSERT INTO eventsql.consumer_offset
        (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
    VALUES (p_consumer_id, p_partition, newest.commit_number + 1, new_offset, new_epoch, newest.consumed_events,
            clock_timestamp());
END $$;

-- Commits offsets of a consumer, each only if epoch and previous offset are still the given ones. Returns the
-- partitions that were committed; the others were lost to another member. Two commits of one partition meet at the
-- DELETE: the second finds no row. p_events: the number of events between the two offsets, which is less than their
-- difference where events are missing from the log.
--
-- Errors: ES011 the database has another incarnation than p_incarnation. Epochs of a lost history may be assigned again,
-- so they fence only within one incarnation. 55P03 a commit of one of the partitions did not end in 2 s: it may wait for
-- synchronous replicas.
CREATE FUNCTION eventsql.commit_offsets_v1(
    p_incarnation text, p_consumer_id int, p_partitions int[], p_epochs bigint[], p_from_offsets bigint[],
    p_to_offsets bigint[], p_events bigint[])
RETURNS SETOF int
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS $$
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    RETURN QUERY
    WITH requested AS MATERIALIZED (
        SELECT * FROM unnest(p_partitions, p_epochs, p_from_offsets, p_to_offsets, p_events)
            AS r (partition, epoch, from_offset, to_offset, events)
        ORDER BY 1
    ), newest AS MATERIALIZED (
        SELECT r.*, o.*
        FROM requested r
        CROSS JOIN LATERAL (
            SELECT n.ctid AS tid, n.commit_number, n.next_offset AS stored_offset, n.epoch AS stored_epoch
            FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p_consumer_id AND n.partition = r.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE o.stored_epoch = r.epoch AND o.stored_offset = r.from_offset
    ), former AS (
        DELETE FROM eventsql.consumer_offset o
        USING newest n
        WHERE o.ctid = n.tid AND o.consumer_id = p_consumer_id AND o.partition = n.partition
          AND o.commit_number = n.commit_number
        RETURNING o.partition, o.commit_number, o.epoch, o.consumed_events, n.events, n.to_offset
    )
    INSERT INTO eventsql.consumer_offset AS inserted
        (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
    SELECT p_consumer_id, f.partition, f.commit_number + 1, f.to_offset, f.epoch,
           f.consumed_events + f.events, clock_timestamp()
    FROM former f
    RETURNING inserted.partition;
END $$;

-- Returns the offset and the epoch of each partition of a consumer. Each newest row is the last entry of its index
-- range.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.consumer_offsets_v1(p_incarnation text, p_consumer_id int)
RETURNS TABLE (partition int, next_offset bigint, epoch bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET lock_timeout = '2s'
AS $$
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    RETURN QUERY
    SELECT p.partition, o.next_offset, o.epoch
    FROM eventsql.consumer_partition p
    CROSS JOIN LATERAL (
        SELECT n.next_offset, n.epoch FROM eventsql.consumer_offset n
        WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
        ORDER BY n.commit_number DESC LIMIT 1) o
    WHERE p.consumer_id = p_consumer_id
    ORDER BY p.partition;
END $$;

-- Returns the key of the advisory lock that is held while events of a partition are handled in a transaction.
CREATE FUNCTION eventsql.handling_lock_v1(p_consumer_id int, p_partition int) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT hashtextextended('eventsql.consumer_partition:' || p_consumer_id || ':' || p_partition, 0)
$$;

-- Begins to handle events of a partition in the caller's transaction, which p_token identifies. The member that takes
-- the partition over terminates the transaction if it is still open; the server terminates it when the client sends
-- nothing for p_idle_timeout_ms.
CREATE FUNCTION eventsql.begin_handling_v1(p_consumer_id int, p_partition int, p_token text, p_idle_timeout_ms bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', p_idle_timeout_ms::text, true),
            set_config('eventsql_handler.token', p_token, true),
            pg_advisory_xact_lock_shared(eventsql.handling_lock_v1(p_consumer_id, p_partition));
END $$;

-- Commits the offset, as the last statement of a transaction begun with begin_handling_v1. Returns false if the
-- partition was lost; the caller then rolls back. From now on a member that takes the partition waits for this
-- transaction, which the server terminates when the client sends nothing for p_idle_timeout_ms.
--
-- Errors: ES006 this is another transaction, because the handler has ended that one; ES011 the database has another
-- incarnation than p_incarnation.
CREATE FUNCTION eventsql.commit_handled_v1(
    p_incarnation text, p_consumer_id int, p_partition int, p_epoch bigint, p_from_offset bigint, p_to_offset bigint,
    p_events bigint,
    p_token text, p_idle_timeout_ms bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('eventsql_handler.token', true) IS DISTINCT FROM p_token THEN
        RAISE EXCEPTION 'the handler has ended the transaction' USING ERRCODE = 'ES006';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', p_idle_timeout_ms::text, true);
    RETURN EXISTS (SELECT FROM eventsql.commit_offsets_v1(
        p_incarnation, p_consumer_id, ARRAY[p_partition], ARRAY[p_epoch], ARRAY[p_from_offset], ARRAY[p_to_offset],
        ARRAY[p_events]));
END $$;

-- Terminates the transactions in which a former holder still handles events of the partition: a frozen process would
-- keep its locks. Such a transaction holds a shared advisory lock. If the role may not terminate it, its own idle
-- timeout ends it. One whose commit waits for synchronous replicas is left alone: its end would show what no replica has.
CREATE FUNCTION eventsql.terminate_handling_v1(p_consumer_id int, p_partition int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    lock_key bigint := eventsql.handling_lock_v1(p_consumer_id, p_partition);
BEGIN
    PERFORM pg_terminate_backend(l.pid)
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = lock_key
      AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = l.pid AND a.wait_event = 'SyncRep');
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'permission denied to terminate the transaction that handles partition %', p_partition;
END $$;
