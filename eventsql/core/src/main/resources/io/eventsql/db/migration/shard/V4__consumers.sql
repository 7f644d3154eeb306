-- EventSQL: consumers, their offsets, members and leases, and the events they could not handle.

INSERT INTO eventsql.schema_version (version, description) VALUES (4, 'consumers');

CREATE TABLE eventsql.consumer (
    consumer_id int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id   int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    name        text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT consumer_name_unique UNIQUE (stream_id, name)
);

-- The offsets of each consumer: the newest row of a partition counts. A commit deletes it and inserts the next one, so
-- that only one of two concurrent commits succeeds. The newest row is always the last entry of its index range, so
-- finding it stays cheap while dead row versions cannot be removed.
CREATE TABLE eventsql.consumer_offset (
    consumer_id     int         NOT NULL,
    partition       int         NOT NULL,
    commit_number   bigint      NOT NULL,
    next_offset     bigint      NOT NULL,              -- the offset to be handled next
    epoch           bigint      NOT NULL,              -- raised by every take and seek: fences out former holders
    consumed_events bigint      NOT NULL,
    committed_at    timestamptz NOT NULL,
    CONSTRAINT consumer_offset_newest PRIMARY KEY (consumer_id, partition, commit_number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, vacuum_truncate = false);

-- The lease and the state of each partition of a consumer. Not part of consumer_offset, because the open transaction of
-- an exactly-once handler would block the heartbeat.
CREATE TABLE eventsql.consumer_partition (
    consumer_id int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition   int         NOT NULL,
    member_id   uuid,                                  -- the holder of the lease; NULL: free
    expires_at  timestamptz,
    state       text        NOT NULL DEFAULT 'running'
                CONSTRAINT consumer_partition_state_known CHECK (state IN ('running', 'paused', 'stopped')),
    error       text,                                  -- why the partition is stopped
    state_since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, partition)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);

-- The members of each consumer, including those without a partition.
CREATE TABLE eventsql.consumer_member (
    consumer_id    int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    member_id      uuid        NOT NULL,
    name           text        NOT NULL,               -- host and process, for display
    max_partitions int         NOT NULL,
    joined_at      timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    PRIMARY KEY (consumer_id, member_id)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);

-- Returns what identifies a key in an index, whose entries are limited to a third of a page; keys may be longer.
CREATE FUNCTION eventsql.key_hash_v1(key text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(convert_to(key, 'UTF8'));

-- Keys whose next events are parked, too.
CREATE TABLE eventsql.parked_key (
    consumer_id int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition   int         NOT NULL,
    key         text        NOT NULL,
    key_hash    bytea       NOT NULL GENERATED ALWAYS AS (eventsql.key_hash_v1(key)) STORED,
    parked_at   timestamptz NOT NULL DEFAULT now(),
    redrive     boolean     NOT NULL DEFAULT false,    -- a redrive of its events was requested
    PRIMARY KEY (consumer_id, partition, key_hash)
);

-- Copies of events that could not be handled, and of later events of parked keys. A dead-lettered event is in the
-- dead-letter stream, too; its copy here can be redriven.
CREATE TABLE eventsql.parked_event (
    consumer_id        int         NOT NULL REFERENCES eventsql.consumer ON DELETE CASCADE,
    partition          int         NOT NULL,
    event_offset       bigint      NOT NULL,
    key                text,
    key_hash           bytea       GENERATED ALWAYS AS (eventsql.key_hash_v1(key)) STORED,
    value              bytea       NOT NULL,
    headers            json,
    published_at       timestamptz NOT NULL,
    dead_letter_stream text,                           -- NULL: parked with its key
    dead_letter_offset bigint,                         -- in the partition of the same number of that stream
    error              text        NOT NULL,
    attempts           int         NOT NULL,           -- 0: never attempted, because its key was parked
    parked_at          timestamptz NOT NULL DEFAULT now(),
    redrive            boolean     NOT NULL DEFAULT false, -- of dead letters; others go with their key
    PRIMARY KEY (consumer_id, partition, event_offset)
);
CREATE INDEX parked_event_of_key ON eventsql.parked_event (consumer_id, partition, key_hash, event_offset)
    WHERE dead_letter_offset IS NULL;
-- Partial indexes, empty most of the time: they make it cheap to find that there is nothing to redrive.
CREATE INDEX parked_key_to_redrive ON eventsql.parked_key (consumer_id, partition) WHERE redrive;
CREATE INDEX parked_event_to_redrive ON eventsql.parked_event (consumer_id, partition, event_offset) WHERE redrive;

-- Returns the parked keys of some partitions. A key is parked as long as one of its events is, so a missing row of
-- parked_key is inserted first: without it no redrive would find those events, and later ones would overtake them. The
-- hashes of the parked events are read one after the other from their index, so the cost depends on the number of keys,
-- not on that of events. Locks the inserted rows.
CREATE FUNCTION eventsql.parked_keys_v1(p_consumer_id int, p_partitions int[])
RETURNS TABLE (partition int, key text)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    WITH RECURSIVE parked (partition, key_hash, event_offset) AS (
        SELECT p.partition, f.key_hash, f.event_offset
        FROM unnest(p_partitions) AS p (partition)
        CROSS JOIN LATERAL (
            SELECT e.key_hash, e.event_offset
            FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = p.partition AND e.dead_letter_offset IS NULL
            ORDER BY e.key_hash, e.event_offset LIMIT 1) f
        UNION ALL
        SELECT k.partition, n.key_hash, n.event_offset
        FROM parked k
        CROSS JOIN LATERAL (
            SELECT e.key_hash, e.event_offset
            FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = k.partition AND e.dead_letter_offset IS NULL
              AND e.key_hash > k.key_hash
            ORDER BY e.key_hash, e.event_offset LIMIT 1) n
    )
    INSERT INTO eventsql.parked_key (consumer_id, partition, key)
    SELECT p_consumer_id, k.partition, e.key
    FROM parked k
    JOIN eventsql.parked_event e ON e.consumer_id = p_consumer_id AND e.partition = k.partition
        AND e.event_offset = k.event_offset
    WHERE e.key IS NOT NULL AND NOT EXISTS (
        SELECT FROM eventsql.parked_key m
        WHERE m.consumer_id = p_consumer_id AND m.partition = k.partition AND m.key_hash = k.key_hash)
    ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT k.partition, k.key
    FROM eventsql.parked_key k
    WHERE k.consumer_id = p_consumer_id AND k.partition = ANY (p_partitions);
END $$;

-- The offset, lag, state and member of each consumer by partition.
CREATE VIEW eventsql.consumer_lag AS
SELECT h.stream,
       c.name AS consumer,
       p.partition,
       o.next_offset,
       h.next_offset AS head,
       greatest(0, h.next_offset - greatest(o.next_offset, h.log_start)) AS lag,
       p.state,
       p.error,
       o.epoch,
       o.committed_at,
       m.name AS member,
       p.expires_at AS lease_expires_at
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

-- Returns the state of the consumers on this shard, in sums over their partitions: the first p_consumers_max, in the order
-- of their creation. The cost is bounded: heads and offsets are the last entries of their index ranges, and the parked
-- events of each consumer are counted up to p_parked_events_max.
CREATE FUNCTION eventsql.consumer_summaries_v1(p_consumers_max int, p_parked_events_max int)
RETURNS TABLE (
    stream text, consumer text, partitions int, stopped_partitions int, paused_partitions int,
    unassigned_partitions int, lag bigint, next_offsets bigint, parked_events int, dead_letters int)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT s.name, c.name, sums.partitions, sums.stopped, sums.paused, sums.unassigned, sums.lag, sums.next_offsets,
           parked.events, parked.dead_letters
    FROM (SELECT * FROM eventsql.consumer k ORDER BY k.consumer_id LIMIT p_consumers_max) c
    JOIN eventsql.stream s USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS partitions,
               (count(*) FILTER (WHERE p.state = 'stopped'))::int AS stopped,
               (count(*) FILTER (WHERE p.state = 'paused'))::int AS paused,
               (count(*) FILTER (WHERE p.state = 'running'
                   AND (p.member_id IS NULL OR p.expires_at <= clock_timestamp())))::int AS unassigned,
               coalesce(sum(greatest(0, h.next_offset - greatest(o.next_offset, t.log_start))), 0)::bigint AS lag,
               coalesce(sum(o.next_offset), 0)::bigint AS next_offsets
        FROM eventsql.consumer_partition p
        JOIN eventsql.stream_partition t ON t.stream_id = c.stream_id AND t.partition = p.partition
        CROSS JOIN LATERAL (
            SELECT n.next_offset FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        CROSS JOIN LATERAL (
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = c.stream_id AND b.partition = p.partition
            ORDER BY b.next_offset DESC LIMIT 1) h
        WHERE p.consumer_id = c.consumer_id) sums
    CROSS JOIN LATERAL (
        SELECT (count(*) - count(e.dead_letter_offset))::int AS events, count(e.dead_letter_offset)::int AS dead_letters
        FROM (
            SELECT q.dead_letter_offset FROM eventsql.parked_event q
            WHERE q.consumer_id = c.consumer_id
            LIMIT p_parked_events_max) e) parked
    ORDER BY c.consumer_id;
END $$;

-- Returns the status of a consumer on this shard, by partition. The cost is bounded: heads and offsets are the last
-- entries of their index ranges, and parked events are counted up to p_parked_events_max.
CREATE FUNCTION eventsql.consumer_status_v1(
    p_consumer_id int, p_stream text, p_segment_size bigint, p_parked_events_max int)
RETURNS TABLE (
    partition int, state text, error text, log_start bigint, head bigint, next_offset bigint, lag_ms bigint,
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
        -- The offset is read before the head: in the other order it could be beyond the head.
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
        JOIN eventsql.producer_batch b ON b.stream_id = c.stream_id AND b.partition = consumer_status_v1.partition
        WHERE c.consumer_id = p_consumer_id
        ORDER BY b.next_offset DESC LIMIT 1;

        lag_ms := 0;
        IF next_offset < head AND head > log_start THEN
            EXECUTE format('SELECT published_at FROM eventsql.%I WHERE event_offset = $1',
                'events_' || p_stream || '__p' || partition
                    || '_s' || greatest(next_offset, log_start) / p_segment_size)
            INTO published USING greatest(next_offset, log_start);
            lag_ms := coalesce(greatest(0, extract(epoch FROM clock_timestamp() - published) * 1000)::bigint, 0);
        END IF;

        SELECT count(*) INTO parked_keys
        FROM eventsql.parked_key k
        WHERE k.consumer_id = p_consumer_id AND k.partition = consumer_status_v1.partition;
        SELECT count(*) INTO parked_events
        FROM (
            SELECT FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = consumer_status_v1.partition
            LIMIT p_parked_events_max) e;
        RETURN NEXT;
    END LOOP;
END $$;
