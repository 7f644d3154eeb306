-- EventSQL schema, version 2: consumers, their offsets, members and leases, and the events they could not handle.

INSERT INTO eventsql.schema_version (version, description) VALUES (2, 'consumers');

CREATE TABLE eventsql.consumer (
    consumer_id int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id   int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    name        text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT consumer_name_unique UNIQUE (stream_id, name)
);

-- How far each consumer is: the newest row of a partition counts. A commit deletes it and inserts the next one, so that
-- of two commits one wins, whoever sends them; and finding the newest stays cheap while old rows cannot be removed.
CREATE TABLE eventsql.consumer_offset (
    consumer_id     int         NOT NULL,
    partition       int         NOT NULL,
    commit_number   bigint      NOT NULL,
    next_offset     bigint      NOT NULL,              -- what is handled next
    epoch           bigint      NOT NULL,              -- raised by each taker, seek and stop: fences out former holders
    consumed_events bigint      NOT NULL,
    committed_at    timestamptz NOT NULL,
    CONSTRAINT consumer_offset_newest PRIMARY KEY (consumer_id, partition, commit_number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);

-- Who may handle each partition, and whether it is handled at all. Apart from consumer_offset, or the open transaction
-- of an exactly-once handler would block the heartbeat.
CREATE TABLE eventsql.consumer_partition (
    consumer_id int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition   int         NOT NULL,
    member_id   uuid,                                  -- NULL: nobody
    expires_at  timestamptz,
    state       text        NOT NULL DEFAULT 'running'
                CONSTRAINT consumer_partition_state_known CHECK (state IN ('running', 'paused', 'stopped')),
    error       text,                                  -- why it is stopped
    state_since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, partition)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

-- The living members of each consumer, also those without a partition.
CREATE TABLE eventsql.consumer_member (
    consumer_id    int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    member_id      uuid        NOT NULL,
    name           text        NOT NULL,               -- for people: host and process
    max_partitions int         NOT NULL,
    joined_at      timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    PRIMARY KEY (consumer_id, member_id)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

-- Keys that are held back: their next events are parked, too.
CREATE TABLE eventsql.parked_key (
    consumer_id int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition   int         NOT NULL,
    key         text        NOT NULL,
    parked_at   timestamptz NOT NULL DEFAULT now(),
    redrive     boolean     NOT NULL DEFAULT false,    -- its events shall be handled again
    PRIMARY KEY (consumer_id, partition, key)
);

-- Copies of events set aside because they could not be handled, or because their key is parked. Dead-lettered ones are
-- in the dead-letter stream, too; here is what of them can be redriven.
CREATE TABLE eventsql.parked_event (
    consumer_id        int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition          int         NOT NULL,
    event_offset       bigint      NOT NULL,
    key                text,
    value              bytea       NOT NULL,
    headers            json,
    published_at       timestamptz NOT NULL,
    dead_letter_stream text,                           -- NULL: parked
    dead_letter_offset bigint,                         -- in that stream's partition of the same number
    error              text        NOT NULL,
    attempts           int         NOT NULL,           -- 0: never tried, its key was parked
    parked_at       timestamptz NOT NULL DEFAULT now(),
    redrive            boolean     NOT NULL DEFAULT false, -- of dead-lettered ones; parked ones go with their key
    PRIMARY KEY (consumer_id, partition, event_offset)
);
CREATE INDEX parked_event_of_key ON eventsql.parked_event (consumer_id, partition, key, event_offset)
    WHERE dead_letter_offset IS NULL;
-- These find in no time that nothing is to be handled again.
CREATE INDEX parked_key_to_redrive ON eventsql.parked_key (consumer_id, partition) WHERE redrive;
CREATE INDEX parked_event_to_redrive ON eventsql.parked_event (consumer_id, partition, event_offset) WHERE redrive;

-- For people: how far each consumer is.
CREATE VIEW eventsql.consumer_lag AS
SELECT h.stream, c.name AS consumer, p.partition, o.next_offset, h.next_offset AS head,
       h.next_offset - greatest(o.next_offset, h.log_start) AS lag, p.state, p.error, o.epoch, o.committed_at,
       m.name AS member, p.expires_at AS lease_expires_at
FROM eventsql.consumer_partition p
JOIN eventsql.consumer c USING (consumer_id)
JOIN eventsql.stream s USING (stream_id)
JOIN eventsql.partition_head h ON h.stream = s.name AND h.partition = p.partition
LEFT JOIN eventsql.consumer_member m ON m.consumer_id = p.consumer_id AND m.member_id = p.member_id
CROSS JOIN LATERAL (
    SELECT n.next_offset, n.epoch, n.committed_at
    FROM eventsql.consumer_offset n
    WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
    ORDER BY n.commit_number DESC LIMIT 1) o;

-- The first offset of a partition whose event was published at the time or later; the head if there is none. Binary
-- search: published_at never runs backwards within a partition.
CREATE FUNCTION eventsql.offset_at_v1(p_stream text, p_partition int, p_time timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    low       bigint;
    high      bigint;
    middle    bigint;
    size      bigint;
    published timestamptz;
BEGIN
    SELECT h.log_start, h.next_offset, s.segment_size INTO STRICT low, high, size
    FROM eventsql.partition_head h JOIN eventsql.stream s ON s.name = h.stream
    WHERE h.stream = p_stream AND h.partition = p_partition;
    WHILE low < high LOOP
        middle := low + (high - low) / 2;
        EXECUTE format('SELECT published_at FROM eventsql.%I WHERE event_offset = $1',
                'events_' || p_stream || '__p' || p_partition || '_s' || middle / size)
        INTO STRICT published USING middle;
        IF published < p_time THEN
            low := middle + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- Puts a new row in the place of a partition's newest one: raises the epoch, and moves the offset if one is given.
-- Waits for a commit under way, and counts it. Returns the new epoch and offset.
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
        SELECT ctid AS place, o.* INTO STRICT newest
        FROM eventsql.consumer_offset o
        WHERE consumer_id = p_consumer_id AND partition = p_partition
        ORDER BY commit_number DESC LIMIT 1;
        DELETE FROM eventsql.consumer_offset
        WHERE ctid = newest.place AND consumer_id = p_consumer_id AND partition = p_partition
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

-- Commits offsets of a consumer, each only if epoch and previous offset are still the given ones; returns the
-- partitions that were committed. The others were lost to another member. Two commits of one partition meet at the
-- DELETE: the second finds the row gone.
CREATE FUNCTION eventsql.commit_offsets_v1(
    p_consumer_id int, p_partitions int[], p_epochs bigint[], p_from_offsets bigint[], p_to_offsets bigint[])
RETURNS SETOF int
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest(p_partitions, p_epochs, p_from_offsets, p_to_offsets)
            AS a (partition, epoch, from_offset, to_offset)
        ORDER BY 1
    ), newest AS MATERIALIZED (
        SELECT a.*, o.*
        FROM asked a
        CROSS JOIN LATERAL (
            SELECT n.ctid AS place, n.commit_number, n.next_offset AS stored_offset, n.epoch AS stored_epoch
            FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p_consumer_id AND n.partition = a.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE o.stored_epoch = a.epoch AND o.stored_offset = a.from_offset
    ), former AS (
        DELETE FROM eventsql.consumer_offset o
        USING newest n
        WHERE o.ctid = n.place AND o.consumer_id = p_consumer_id AND o.partition = n.partition
          AND o.commit_number = n.commit_number
        RETURNING o.partition, o.commit_number, o.epoch, o.consumed_events, n.from_offset, n.to_offset
    )
    INSERT INTO eventsql.consumer_offset AS inserted
        (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
    SELECT p_consumer_id, f.partition, f.commit_number + 1, f.to_offset, f.epoch,
           f.consumed_events + (f.to_offset - f.from_offset), clock_timestamp()
    FROM former f
    RETURNING inserted.partition;
END $$;

-- How many of the consumer's running partitions a member should hold on this shard: as near to the others' as can be.
-- Nobody gets more than its maximum; what that leaves, the others get. Which members get one more than others depends
-- on the shard, so that a member does not get one more everywhere.
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
               - CASE WHEN m.max_partitions >= level AND m.place <= capacity - p_partitions THEN 1 ELSE 0 END
        FROM (
            SELECT l.*, row_number() OVER (
                       PARTITION BY l.max_partitions >= level ORDER BY (l.rank + p_shard) % members DESC) AS place
            FROM (
                SELECT member_id, max_partitions, row_number() OVER (ORDER BY joined_at, member_id) - 1 AS rank
                FROM eventsql.consumer_member
                WHERE consumer_id = p_consumer_id AND expires_at > clock_timestamp()) l) m
        WHERE m.member_id = p_member_id), 0);
END $$;

-- One heartbeat of all members of a process: renews them and the leases of the partitions they name, and says for each
-- member (by its place in p_members, from 1) which leases it still has; which of these it shall give up, because the
-- partition does not run any more, and on which something is to be handled again; its fair share; how many partitions nobody holds, or it holds without knowing, because the answer to its taking
-- them was lost; in how many milliseconds the next
-- lease of another member expires; and what identifies this history of the log. No row for a consumer that is gone.
CREATE FUNCTION eventsql.beat_v1(
    p_shard int, p_lease interval, p_consumer_ids int[], p_members uuid[], p_names text[], p_max_partitions int[],
    p_held_members int[], p_held_partitions int[])
RETURNS TABLE (
    member int, renewed int[], ending int[], to_redrive int[], share int, free int, next_expiry_ms bigint, history text)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    held       int[];
    partitions int;
BEGIN
    history := (SELECT history_number FROM eventsql.shard) || '.' || left(pg_walfile_name(pg_current_wal_lsn()), 8);
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
        INTO renewed, ending FROM updated u;

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

-- Ends the transactions in which a former holder of the partition still handles events: a frozen one would keep its
-- locks. Such a transaction holds a shared advisory lock; without the right to end it, its own time limit does.
CREATE FUNCTION eventsql.end_handling_v1(p_consumer_id int, p_partition int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    lock_key bigint := eventsql.handling_lock_v1(p_consumer_id, p_partition);
BEGIN
    PERFORM pg_terminate_backend(l.pid)
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = lock_key;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'no right to end the transaction that handles partition %', p_partition;
END $$;

-- The advisory lock held while a partition's events are handled in a transaction.
CREATE FUNCTION eventsql.handling_lock_v1(p_consumer_id int, p_partition int) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT hashtextextended('eventsql.consumer_partition:' || p_consumer_id || ':' || p_partition, 0)
$$;

-- Begins to handle events of a partition in the caller's transaction. Whoever takes the partition over ends the
-- transaction if it is still open; so does the server when nothing is sent for the given time.
CREATE FUNCTION eventsql.begin_handling_v1(p_consumer_id int, p_partition int, p_handling text, p_idle_ms bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', p_idle_ms::text, true),
            set_config('eventsql_handler.token', p_handling, true),
            pg_advisory_xact_lock_shared(eventsql.handling_lock_v1(p_consumer_id, p_partition));
END $$;

-- Commits the offset as the last statement of the transaction begun with begin_handling_v1; false if the partition was
-- lost: the caller rolls back then. Error ES006: it is another transaction, the handler has ended that one. From now on
-- a taker waits for this transaction: the server ends it when it is silent for p_idle_ms.
CREATE FUNCTION eventsql.commit_handled_v1(
    p_consumer_id int, p_partition int, p_epoch bigint, p_from_offset bigint, p_to_offset bigint, p_handling text,
    p_idle_ms bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('eventsql_handler.token', true) IS DISTINCT FROM p_handling THEN
        RAISE EXCEPTION 'the handler has ended the transaction' USING ERRCODE = 'ES006';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', p_idle_ms::text, true);
    RETURN EXISTS (SELECT FROM eventsql.commit_offsets_v1(
        p_consumer_id, ARRAY[p_partition], ARRAY[p_epoch], ARRAY[p_from_offset], ARRAY[p_to_offset]));
END $$;

-- Takes partitions that nobody holds, at most so many and none of p_except: raises their epochs, which fences out
-- former holders, and returns where to begin. Waits only for transactions that commit an offset at this moment.
CREATE FUNCTION eventsql.take_v1(p_consumer_id int, p_member_id uuid, p_lease interval, p_count int, p_except int[])
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
    FOR taken IN
        SELECT p.partition, p.member_id AS former
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.state = 'running' AND p.partition <> ALL (p_except)
          AND (p.member_id IS NULL OR p.member_id = p_member_id OR p.expires_at <= clock_timestamp())
        ORDER BY random() LIMIT p_count -- one that cannot be taken must not stand before the others for ever
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        IF taken.former IS NOT NULL THEN
            PERFORM eventsql.end_handling_v1(p_consumer_id, taken.partition);
        END IF;
        BEGIN
            SELECT r.new_epoch, r.new_offset INTO epoch, next_offset
            FROM eventsql.raise_epoch_v1(p_consumer_id, taken.partition, NULL) r;
        EXCEPTION WHEN lock_not_available THEN
            EXIT; -- a transaction that could not be ended still commits an offset: another time
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

-- Moves a consumer in one partition and frees it: whoever holds it has lost it, and the next holder begins there. With
-- p_epoch only if that is still the epoch: otherwise error ES007. False if there is no such partition.
CREATE FUNCTION eventsql.seek_v1(p_consumer_id int, p_partition int, p_next_offset bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
DECLARE
    former_epoch bigint;
BEGIN
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition FOR NO KEY UPDATE;
    PERFORM eventsql.end_handling_v1(p_consumer_id, p_partition);
    SELECT r.new_epoch - 1 INTO former_epoch
    FROM eventsql.raise_epoch_v1(p_consumer_id, p_partition, p_next_offset) r;
    IF former_epoch <> p_epoch THEN
        RAISE EXCEPTION 'partition % was taken meanwhile', p_partition USING ERRCODE = 'ES007';
    END IF;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition;
    RETURN FOUND;
END $$;

-- Gives partitions back: anyone may take them at once.
CREATE FUNCTION eventsql.release_v1(p_consumer_id int, p_member_id uuid, p_partitions int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND p.partition = ANY (p_partitions) AND p.member_id = p_member_id
    ORDER BY p.partition FOR NO KEY UPDATE;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = ANY (p_partitions) AND p.member_id = p_member_id;
END $$;

-- How far a consumer is, by partition: each newest row is the last entry of its index range.
CREATE FUNCTION eventsql.consumer_offsets_v1(p_consumer_id int)
RETURNS TABLE (partition int, next_offset bigint, epoch bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
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

-- How a consumer is on this shard, by partition. Nothing is counted that could be many: heads and offsets are the last
-- entries of their index ranges, and events set aside are counted up to p_count_max.
CREATE FUNCTION eventsql.consumer_state_v1(p_consumer_id int, p_stream text, p_segment_size bigint, p_count_max int)
RETURNS TABLE (
    partition int, state text, error text, log_start bigint, head bigint, next_offset bigint, behind_ms bigint,
    committed_at timestamptz, epoch bigint, member text, expires_at timestamptz, parked_keys int, parked_events int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    published timestamptz;
BEGIN
    FOR partition, state, error, log_start, next_offset, committed_at, epoch, member, expires_at, head IN
        -- The offset before the head: read the other way round, it could be beyond it.
        SELECT p.partition, p.state, p.error, s.log_start, o.next_offset, o.committed_at, o.epoch,
               coalesce(m.name, p.member_id::text), p.expires_at, NULL
        FROM eventsql.consumer c
        JOIN eventsql.consumer_partition p USING (consumer_id)
        JOIN eventsql.stream_partition s ON s.stream_id = c.stream_id AND s.partition = p.partition
        LEFT JOIN eventsql.consumer_member m ON m.consumer_id = p.consumer_id AND m.member_id = p.member_id
        CROSS JOIN LATERAL (
            SELECT n.* FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE c.consumer_id = p_consumer_id
        ORDER BY p.partition
    LOOP
        SELECT b.next_offset INTO head
        FROM eventsql.consumer c
        JOIN eventsql.producer_batch b ON b.stream_id = c.stream_id AND b.partition = consumer_state_v1.partition
        WHERE c.consumer_id = p_consumer_id
        ORDER BY b.next_offset DESC LIMIT 1;
        behind_ms := 0;
        IF next_offset < head AND head > log_start THEN
            EXECUTE format('SELECT published_at FROM eventsql.%I WHERE event_offset = $1',
                'events_' || p_stream || '__p' || partition || '_s' || greatest(next_offset, log_start) / p_segment_size)
            INTO published USING greatest(next_offset, log_start);
            behind_ms := coalesce(greatest(0, extract(epoch FROM clock_timestamp() - published) * 1000)::bigint, 0);
        END IF;
        SELECT count(*) INTO parked_keys FROM eventsql.parked_key k
        WHERE k.consumer_id = p_consumer_id AND k.partition = consumer_state_v1.partition;
        SELECT count(*) INTO parked_events FROM (
            SELECT FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = consumer_state_v1.partition
            LIMIT p_count_max) e;
        RETURN NEXT;
    END LOOP;
END $$;
