-- EventSQL: retention. Segments expire as a whole, from the oldest on, as soon as a limit of their stream is exceeded
-- without them.
--
-- An expired segment goes in three steps, each a transaction of its own: the log's start moves above it, its table is
-- truncated, which returns the space and locks no parent, and the empty table is dropped. If interrupted between two
-- steps, the log is consistent, and any process continues.

INSERT INTO eventsql.schema_version (version, description) VALUES (9, 'retention');

-- The limits hold for each partition; NULL: no such limit. The column retention is the largest age.
ALTER TABLE eventsql.stream
    ADD COLUMN retention_bytes  bigint   CONSTRAINT stream_retention_bytes_positive CHECK (retention_bytes > 0),
    ADD COLUMN retention_events bigint   CONSTRAINT stream_retention_events_positive CHECK (retention_events > 0),
    ADD COLUMN expire_handled   boolean  NOT NULL DEFAULT false, -- events expire when all consumers have handled them
    -- A consumer that is behind and has not committed for so long no longer keeps events.
    ADD COLUMN abandoned_after  interval NOT NULL DEFAULT '7 days',
    ADD COLUMN tombstone_delay  interval NOT NULL DEFAULT '1 day'; -- of a compacted stream: how long tombstones stay

-- One pass over the partitions after the other, shared by all processes: the one that locks the row takes the next step.
CREATE TABLE eventsql.retention_pass (
    singleton        boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    stream_id        int         NOT NULL DEFAULT 0,   -- the partition visited last
    partition        int         NOT NULL DEFAULT -1,
    truncating       boolean     NOT NULL DEFAULT false, -- it has more segments to be truncated
    is_running       boolean     NOT NULL DEFAULT false, -- the pass is not finished
    began_at         timestamptz,                      -- NULL: no pass was begun
    ended_at         timestamptz,                      -- of the pass finished last
    expired_segments bigint      NOT NULL DEFAULT 0,   -- since the schema was created
    expired_events   bigint      NOT NULL DEFAULT 0,
    expired_bytes    bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = false);
INSERT INTO eventsql.retention_pass DEFAULT VALUES;

-- What retention has removed, and what it has still to remove.
CREATE VIEW eventsql.retention_status AS
SELECT p.expired_segments, p.expired_events, p.expired_bytes,
       s.segments_to_empty,                            -- their space is not returned yet: a transaction reads them
       s.empty_tables,                                 -- they are not dropped yet
       p.began_at AS pass_began_at, p.ended_at AS pass_ended_at
FROM eventsql.retention_pass p
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE g.state = 'expired') AS segments_to_empty,
           count(*) FILTER (WHERE g.state = 'empty') AS empty_tables
    FROM eventsql.segment g
    WHERE g.state IN ('expired', 'empty')) s;

-- Creates a stream as create_stream_v1 does, with its retention and compaction; an existing one stays as it is.
CREATE FUNCTION eventsql.create_stream_v2(
    p_name text, p_partitions int, p_segment_size bigint, p_json boolean, p_map_version int,
    p_age interval, p_bytes bigint, p_events bigint, p_handled boolean, p_abandoned_after interval,
    p_compaction boolean DEFAULT false, p_tombstone_delay interval DEFAULT '1 day')
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
    -- "ESST": a stream that another process creates at the same time is not changed.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_name));
    IF EXISTS (SELECT FROM eventsql.stream s WHERE s.name = p_name) THEN
        RETURN;
    END IF;
    PERFORM eventsql.create_stream_v1(p_name, p_partitions, p_segment_size, p_json, p_map_version);
    UPDATE eventsql.stream s
    SET retention = p_age, retention_bytes = p_bytes, retention_events = p_events, expire_handled = p_handled,
        abandoned_after = p_abandoned_after, compaction = p_compaction, tombstone_delay = p_tombstone_delay
    WHERE s.name = p_name;
    PERFORM eventsql.apply_latest_view_v1(p_name); -- of version 13
END $$;

-- Changes the settings of a stream that can be changed. Returns whether the stream exists. Publishers and consumers
-- continue: no table that they use is locked. Waits for the current steps of retention and compaction, so that no event goes
-- by the former settings once this is committed.
CREATE FUNCTION eventsql.alter_stream_v1(
    p_name text, p_segment_size bigint, p_json boolean,
    p_age interval, p_bytes bigint, p_events bigint, p_handled boolean, p_abandoned_after interval,
    p_compaction boolean DEFAULT false, p_tombstone_delay interval DEFAULT '1 day')
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    stream record;
    events text;
    view   text;
BEGIN
    PERFORM FROM eventsql.retention_pass FOR UPDATE;
    PERFORM FROM eventsql.compaction_pass FOR UPDATE;
    SELECT s.json, s.table_name INTO stream FROM eventsql.stream s WHERE s.name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    events := format('eventsql.%I', stream.table_name);
    view := format('eventsql.%I', stream.table_name || '__json');
    IF p_json AND to_regclass(view) IS NULL THEN
        EXECUTE format(
            'CREATE VIEW %s AS'
            ' SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers, published_at'
            ' FROM %s', view, events);
        PERFORM eventsql.copy_grants_v1(events::regclass, view::regclass);
    ELSIF NOT p_json AND stream.json THEN
        EXECUTE format('DROP VIEW IF EXISTS %s', view);
    END IF;
    UPDATE eventsql.stream s
    SET segment_size = p_segment_size, json = p_json, retention = p_age, retention_bytes = p_bytes,
        retention_events = p_events, expire_handled = p_handled, abandoned_after = p_abandoned_after,
        compaction = p_compaction, tombstone_delay = p_tombstone_delay
    WHERE s.name = p_name;
    PERFORM eventsql.apply_latest_view_v1(p_name); -- of version 13
    RETURN true;
END $$;

-- Returns when the last event of a segment was published; NULL without events, or without the table.
CREATE FUNCTION eventsql.last_published_v1(p_segment_table text) RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    published timestamptz;
BEGIN
    IF to_regclass(format('eventsql.%I', p_segment_table)) IS NOT NULL THEN
        EXECUTE format('SELECT published_at FROM eventsql.%I ORDER BY event_offset DESC LIMIT 1', p_segment_table)
        INTO published;
    END IF;
    RETURN published;
END $$;

-- Returns the segments with events of a stream, or of one of its partitions, and what retention does with each: the limit
-- by which it expires in the next pass, or NULL, and the time at which it expires by its age. is_active: the head is in
-- it; it expires only when all of its events do.
--
-- Changes nothing. A consumer keeps a segment as long as it has events of it to handle; not if it has not committed for
-- abandoned_after, nor in that time got another event of the segment. Without consumers nothing counts as handled.
--
-- Indexes: the primary keys of segment, producer_batch and consumer_offset. Takes no row lock.
CREATE FUNCTION eventsql.retention_plan_v1(p_stream_id int, p_partition int DEFAULT NULL)
RETURNS TABLE (
    partition int, first_offset bigint, end_offset bigint, table_name text, is_active boolean, events bigint, bytes bigint,
    last_published_at timestamptz, expires_by text, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    quiet_after CONSTANT interval := '1 minute'; -- an active segment is not emptied between two events
    policy      record;
BEGIN
    SELECT s.*, EXISTS (SELECT FROM eventsql.consumer c WHERE c.stream_id = s.stream_id) AS has_consumers
    INTO policy
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    RETURN QUERY
    WITH stored AS (
        SELECT g.partition, greatest(g.first_offset, p.log_start) AS first_offset,
               least(g.end_offset, h.next_offset) AS end_offset, g.table_name, g.end_offset > h.next_offset AS is_active,
               least(g.end_offset, h.next_offset) - greatest(g.first_offset, p.log_start) - g.removed_events AS events,
               CASE WHEN g.state = 'closed' THEN g.bytes
                    ELSE pg_total_relation_size(to_regclass(format('eventsql.%I', g.table_name))) END AS bytes,
               CASE WHEN g.state = 'closed' THEN g.last_published_at
                    WHEN g.end_offset > h.next_offset THEN h.published_at
                    ELSE eventsql.last_published_v1(g.table_name) END AS last_published_at
        FROM eventsql.stream_partition p
        CROSS JOIN LATERAL (
            SELECT b.next_offset, b.published_at FROM eventsql.producer_batch b
            WHERE b.stream_id = p.stream_id AND b.partition = p.partition
            ORDER BY b.next_offset DESC LIMIT 1) h
        JOIN eventsql.segment g ON g.stream_id = p.stream_id AND g.partition = p.partition
        WHERE p.stream_id = p_stream_id AND (p_partition IS NULL OR p.partition = p_partition)
          AND g.state IN ('open', 'closed') AND g.first_offset < h.next_offset
          AND least(g.end_offset, h.next_offset) > p.log_start
    ), summed AS (
        SELECT s.*, coalesce(sum(s.bytes) OVER (
            PARTITION BY s.partition ORDER BY s.first_offset DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_after,
            coalesce(sum(s.events) OVER (
            PARTITION BY s.partition ORDER BY s.first_offset DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS events_after
        FROM stored s
    ), judged AS (
        SELECT s.*,
            CASE
                WHEN s.last_published_at < clock_timestamp() - policy.retention THEN 'age'
                WHEN s.bytes_after >= policy.retention_bytes THEN 'bytes'
                WHEN s.events_after >= policy.retention_events THEN 'events'
                WHEN policy.expire_handled AND policy.has_consumers
                    AND (NOT s.is_active OR s.last_published_at < clock_timestamp() - quiet_after)
                    AND NOT EXISTS (
                        SELECT
                        FROM eventsql.consumer c
                        LEFT JOIN LATERAL (
                            SELECT n.next_offset, n.committed_at FROM eventsql.consumer_offset n
                            WHERE n.consumer_id = c.consumer_id AND n.partition = s.partition
                            ORDER BY n.commit_number DESC LIMIT 1) o ON true
                        WHERE c.stream_id = p_stream_id AND coalesce(o.next_offset, 0) < s.end_offset
                          AND greatest(coalesce(o.committed_at, c.created_at), s.last_published_at)
                              > clock_timestamp() - policy.abandoned_after)
                    THEN 'handled'
            END AS exceeded
        FROM summed s
    )
    SELECT j.partition, j.first_offset, j.end_offset, j.table_name, j.is_active, j.events, j.bytes, j.last_published_at,
           -- Only after all before it.
           CASE WHEN bool_and(j.exceeded IS NOT NULL) OVER (PARTITION BY j.partition ORDER BY j.first_offset)
                THEN j.exceeded END,
           j.last_published_at + policy.retention
    FROM judged j
    ORDER BY j.partition, j.first_offset;
END $$;

-- Moves the start of a partition's log above the segments that expire. A partition whose last event has expired is emptied
-- at once, with the segment that its head is in. Returns how many segments, events and bytes have expired.
--
-- Locks the row that every append locks first, for the time of a few short statements; the segment of a quiet partition is
-- locked without waiting. The caller ends the transaction at once.
CREATE FUNCTION eventsql.expire_partition_v1(
    p_stream_id int, p_partition int, OUT segments int, OUT events bigint, OUT bytes bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    expiring record;
    active   record;
BEGIN
    PERFORM eventsql.close_segments_v1(p_stream_id, p_partition);
    SELECT max(r.end_offset) FILTER (WHERE NOT r.is_active) AS new_start,
           count(*) FILTER (WHERE NOT r.is_active) AS segments,
           coalesce(sum(r.events) FILTER (WHERE NOT r.is_active), 0) AS events,
           coalesce(sum(r.bytes) FILTER (WHERE NOT r.is_active), 0) AS bytes,
           coalesce(bool_or(r.is_active), false) AS is_quiet
    INTO expiring
    FROM eventsql.retention_plan_v1(p_stream_id, p_partition) r
    WHERE r.expires_by IS NOT NULL;
    segments := expiring.segments;
    events := expiring.events;
    bytes := expiring.bytes;

    IF expiring.segments > 0 OR expiring.is_quiet THEN
        PERFORM FROM eventsql.stream_partition p
        WHERE p.stream_id = p_stream_id AND p.partition = p_partition
        FOR UPDATE;
    END IF;
    IF expiring.is_quiet THEN
        BEGIN
            -- A new statement sees what was appended before the lock was granted.
            SELECT * INTO active
            FROM eventsql.retention_plan_v1(p_stream_id, p_partition) r
            WHERE r.expires_by IS NOT NULL AND r.is_active;
            IF FOUND THEN
                EXECUTE format('LOCK TABLE ONLY eventsql.%I IN ACCESS EXCLUSIVE MODE NOWAIT', active.table_name);
                EXECUTE format('TRUNCATE ONLY eventsql.%I', active.table_name);
                expiring.new_start := active.end_offset;
                segments := segments + 1;
                events := events + active.end_offset - active.first_offset;
                bytes := bytes + active.bytes;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            NULL; -- a transaction reads it: repeated in the next pass
        END;
    END IF;
    IF segments > 0 THEN
        UPDATE eventsql.segment g SET state = 'expired', expired_at = clock_timestamp()
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state IN ('open', 'closed')
          AND g.end_offset <= expiring.new_start;
        UPDATE eventsql.stream_partition p SET log_start = expiring.new_start
        WHERE p.stream_id = p_stream_id AND p.partition = p_partition AND p.log_start < expiring.new_start;
    END IF;
END $$;

-- Truncates expired segments of a partition: up to p_max that no transaction uses. If all are in use, waits for one of
-- them, as long as lock_timeout allows; only statements that read this segment wait with it. Returns how many.
CREATE FUNCTION eventsql.truncate_expired_v1(p_stream_id int, p_partition int, p_max int) RETURNS int
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    segment   record;
    truncated int := 0;
BEGIN
    FOR segment IN -- the last one again, after the others: the one to wait for
        SELECT e.*, 'NOWAIT' AS wait
        FROM (
            SELECT g.first_offset, g.table_name, 1 AS attempt
            FROM eventsql.segment g
            WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'expired'
            ORDER BY g.first_offset) e
        UNION ALL
        SELECT e.*, ''
        FROM (
            SELECT g.first_offset, g.table_name, 2 AS attempt
            FROM eventsql.segment g
            WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'expired'
            ORDER BY random() LIMIT 1) e
        ORDER BY attempt, first_offset
    LOOP
        EXIT WHEN truncated = p_max OR (truncated > 0 AND segment.attempt = 2);
        BEGIN
            IF to_regclass(format('eventsql.%I', segment.table_name)) IS NOT NULL THEN
                EXECUTE format(
                    'LOCK TABLE ONLY eventsql.%I IN ACCESS EXCLUSIVE MODE %s', segment.table_name, segment.wait);
                EXECUTE format('TRUNCATE ONLY eventsql.%I', segment.table_name);
            END IF;
            UPDATE eventsql.segment g SET state = 'empty'
            WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset = segment.first_offset;
            truncated := truncated + 1;
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE; -- a transaction uses it
        END;
    END LOOP;
    RETURN truncated;
END $$;

-- Takes the next step of retention: segments of one partition expire, or those of one partition that have expired are
-- truncated. Computes the policy itself. Returns 'more' if the pass over all partitions continues: the caller repeats the call
-- in another transaction. 'finished' at the end of the pass, 'idle' if it is known then that there is nothing to remove, also
-- in the next passes, because no stream has a limit; 'waiting' if nothing was done, because another process takes a step or
-- the next pass is not due.
--
-- p_pause: how long after the begin of one pass the next one begins; at least twenty times as long as a pass takes. 0: at
-- once.
--
-- Waits 100 ms at most for a lock.
--
-- Errors: ES003 the transaction is not READ COMMITTED.
CREATE FUNCTION eventsql.expire_v1(p_pause interval DEFAULT '0') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    visited_max   CONSTANT int := 100;
    truncated_max CONSTANT int := 10;
    ends_at       timestamptz := clock_timestamp() + interval '100 ms';
    pass          record;
    visit         record;
    expired       record;
    truncated     int;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'retention requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    SELECT * INTO pass FROM eventsql.retention_pass FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'waiting';
    END IF;
    -- What is lost in a failover is done again; a wait for replicas would hold the row of a partition.
    PERFORM set_config('synchronous_commit', 'local', true)
    WHERE current_setting('synchronous_commit') NOT IN ('off', 'local');
    IF NOT pass.is_running THEN
        IF p_pause > '0'
            AND clock_timestamp() < pass.began_at + greatest(p_pause, 20 * (pass.ended_at - pass.began_at))
        THEN
            RETURN 'waiting';
        END IF;
        pass.stream_id := 0;
        pass.partition := -1;
        pass.truncating := false;
        UPDATE eventsql.retention_pass SET began_at = clock_timestamp(), is_running = true;
    END IF;

    FOR visited IN 1 .. visited_max LOOP
        EXIT WHEN clock_timestamp() > ends_at;
        IF pass.truncating THEN
            SELECT pass.stream_id, pass.partition INTO visit;
        ELSE
            -- The next partition with a policy, with an expired segment, or with one to be closed.
            SELECT p.stream_id, p.partition INTO visit
            FROM eventsql.stream_partition p
            JOIN eventsql.stream s USING (stream_id)
            WHERE (p.stream_id, p.partition) > (pass.stream_id, pass.partition)
              AND (num_nonnulls(s.retention, s.retention_bytes, s.retention_events) > 0 OR s.expire_handled
                   OR EXISTS (
                       SELECT FROM eventsql.segment g
                       WHERE g.stream_id = p.stream_id AND g.partition = p.partition AND g.state = 'expired')
                   OR EXISTS (
                       SELECT FROM eventsql.segment g
                       WHERE g.stream_id = p.stream_id AND g.partition = p.partition AND g.state = 'open'
                         AND g.end_offset <= (
                             SELECT b.next_offset FROM eventsql.producer_batch b
                             WHERE b.stream_id = p.stream_id AND b.partition = p.partition
                             ORDER BY b.next_offset DESC LIMIT 1)))
            ORDER BY p.stream_id, p.partition LIMIT 1;
            IF NOT FOUND THEN
                UPDATE eventsql.retention_pass SET ended_at = clock_timestamp(), is_running = false, truncating = false;
                RETURN CASE
                    WHEN EXISTS (
                        SELECT FROM eventsql.stream s
                        WHERE num_nonnulls(s.retention, s.retention_bytes, s.retention_events) > 0 OR s.expire_handled)
                    OR EXISTS (SELECT FROM eventsql.segment g WHERE g.state IN ('expired', 'empty'))
                    THEN 'finished' ELSE 'idle' END;
            END IF;
            pass.stream_id := visit.stream_id;
            pass.partition := visit.partition;
            BEGIN
                SELECT * INTO expired FROM eventsql.expire_partition_v1(visit.stream_id, visit.partition);
                IF expired.segments > 0 THEN
                    -- In a transaction of its own: readers see the log's start before the segment is empty.
                    UPDATE eventsql.retention_pass p
                    SET stream_id = visit.stream_id, partition = visit.partition, truncating = true,
                        expired_segments = p.expired_segments + expired.segments,
                        expired_events = p.expired_events + expired.events,
                        expired_bytes = p.expired_bytes + expired.bytes;
                    RETURN 'more';
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                CONTINUE; -- an append waits for replicas, or an outbox's relay: repeated in the next pass
            END;
        END IF;
        truncated := eventsql.truncate_expired_v1(visit.stream_id, visit.partition, truncated_max);
        pass.truncating := truncated = truncated_max;
        EXIT WHEN truncated > 0;
    END LOOP;
    UPDATE eventsql.retention_pass
    SET stream_id = pass.stream_id, partition = pass.partition, truncating = pass.truncating;
    RETURN 'more';
END $$;

-- Returns the size that the next segment of a partition should have: an eighth of each limit, by the rate and the size of
-- the events of the last two segments, so that whole segments can expire in time; the stream's segment size at most. Of a
-- compacted stream 100,000 at most: events are compacted only after their segment has ended.
CREATE OR REPLACE FUNCTION eventsql.next_segment_size_v1(p_stream_id int, p_partition int) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    segments_per_limit CONSTANT int := 8;
    compacted_size_max CONSTANT bigint := 100000;
    size_min           CONSTANT bigint := 1000; -- a stream has a few segments ahead of the head, however quiet it is
    stream             record;
    head               bigint;
    segment            record;
    first              record;
    since              timestamptz;
    since_offset       bigint;
    bytes              bigint;
    size               bigint;
BEGIN
    SELECT s.segment_size, s.retention, s.retention_bytes, s.retention_events, s.compaction INTO STRICT stream
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    size := least(stream.segment_size, stream.retention_events / segments_per_limit,
        CASE WHEN stream.compaction THEN compacted_size_max END);
    IF num_nonnulls(stream.retention, stream.retention_bytes) > 0 THEN
        SELECT b.next_offset INTO STRICT head
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_id AND b.partition = p_partition
        ORDER BY b.next_offset DESC LIMIT 1;
        FOR segment IN -- the newest one first: of both, the earlier one counts
            SELECT g.table_name, to_regclass(format('eventsql.%I', g.table_name)) AS id
            FROM eventsql.segment g
            WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset < head
              AND g.state IN ('open', 'closed')
            ORDER BY g.first_offset DESC LIMIT 2
        LOOP
            CONTINUE WHEN segment.id IS NULL; -- dropped by hand
            FOR first IN EXECUTE format(
                'SELECT event_offset, published_at FROM eventsql.%I ORDER BY event_offset LIMIT 1', segment.table_name)
            LOOP
                since := first.published_at;
                since_offset := first.event_offset;
                bytes := coalesce(bytes, 0) + pg_total_relation_size(segment.id);
            END LOOP;
        END LOOP;
    END IF;
    IF since IS NOT NULL AND head > since_offset THEN -- otherwise nothing is known of its rate
        size := least(
            size,
            ceil((head - since_offset) * extract(epoch FROM stream.retention) / segments_per_limit
                / greatest(extract(epoch FROM clock_timestamp() - since), 1))::bigint,
            ceil((head - since_offset) * (stream.retention_bytes::numeric / bytes) / segments_per_limit)::bigint);
    END IF;
    RETURN least(stream.segment_size, greatest(size_min, size));
END $$;

-- Returns the active segment of a partition if it is to end before it is full, so that its events can expire in time: it
-- holds more than an eighth of what a limit of the stream allows. No row otherwise.
CREATE FUNCTION eventsql.segment_to_end_v1(p_stream_id int, p_partition int)
RETURNS TABLE (table_name text, first_offset bigint, end_offset bigint, head bigint, events bigint, since timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    segments_per_limit CONSTANT int := 8;
    age_min            CONSTANT interval := '10 seconds'; -- each end costs a few tables
    events_min         CONSTANT int := 1000;
    policy             record;
BEGIN
    SELECT s.retention, s.retention_bytes, s.retention_events, p.log_start INTO policy
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.stream_id = p_stream_id AND p.partition = p_partition;
    IF num_nonnulls(policy.retention, policy.retention_bytes, policy.retention_events) = 0 THEN
        RETURN;
    END IF;
    SELECT b.next_offset INTO head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    SELECT g.table_name, g.first_offset, g.end_offset INTO table_name, first_offset, end_offset
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset < head AND g.state = 'open'
    ORDER BY g.first_offset DESC LIMIT 1;
    events := head - greatest(first_offset, policy.log_start);
    IF table_name IS NULL OR events = 0 OR end_offset <= head THEN
        RETURN;
    ELSIF to_regclass(format('eventsql.%I', table_name)) IS NULL THEN -- dropped by hand
        RETURN;
    END IF;
    EXECUTE format('SELECT published_at FROM eventsql.%I ORDER BY event_offset LIMIT 1', table_name) INTO since;
    IF since < clock_timestamp() - greatest(policy.retention / segments_per_limit, age_min)
        AND policy.retention IS NOT NULL
        OR events >= greatest(policy.retention_events / segments_per_limit, events_min)
        AND policy.retention_events IS NOT NULL
        OR events >= events_min
        AND pg_total_relation_size(format('eventsql.%I', table_name)::regclass)
            >= policy.retention_bytes / segments_per_limit
    THEN
        RETURN NEXT;
    END IF;
END $$;

-- Returns the partitions whose active segments are to end early, p_max of them at most, in no particular order.
CREATE FUNCTION eventsql.segments_to_end_v1(p_max int) RETURNS TABLE (stream_id int, partition int)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
    SELECT p.stream_id, p.partition
    FROM eventsql.stream_partition p
    JOIN eventsql.stream s USING (stream_id)
    CROSS JOIN LATERAL eventsql.segment_to_end_v1(p.stream_id, p.partition) g
    WHERE num_nonnulls(s.retention, s.retention_bytes, s.retention_events) > 0
    LIMIT p_max
$$;

-- Prepares a large segment to end early: adds the constraint that proves its new end, without checking it yet. Returns
-- whether there is one to be checked.
--
-- The new end leaves room for the events of a minute and two of the largest batches. An append beyond it, before the
-- segment has ended, fails as without a segment does; ensure_segments_v1 then removes the constraint.
CREATE FUNCTION eventsql.begin_segment_end_v1(p_stream_id int, p_partition int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    room_events CONSTANT bigint := 200000;
    segment     record;
    new_end     bigint;
BEGIN
    SELECT * INTO segment FROM eventsql.segment_to_end_v1(p_stream_id, p_partition);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    new_end := segment.head + room_events + ceil(
        segment.events * 60 / greatest(extract(epoch FROM clock_timestamp() - segment.since), 1))::bigint;
    IF new_end >= segment.end_offset THEN
        RETURN false; -- it is nearly full
    END IF;
    EXECUTE format('ALTER TABLE eventsql.%I DROP CONSTRAINT IF EXISTS eventsql_end', segment.table_name);
    EXECUTE format(
        'ALTER TABLE eventsql.%I ADD CONSTRAINT eventsql_end'
        ' CHECK (partition = %s AND event_offset >= %s AND event_offset < %s) NOT VALID',
        segment.table_name, p_partition, segment.first_offset, new_end);
    RETURN true;
END $$;

-- Checks the rows of a segment that is to end; publishers and readers do not wait for it. In a transaction of its own,
-- after begin_segment_end_v1.
CREATE FUNCTION eventsql.check_segment_end_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT g.table_name
        FROM eventsql.segment g
        JOIN pg_constraint c ON c.conrelid = to_regclass(format('eventsql.%I', g.table_name))
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'open'
          AND c.conname = 'eventsql_end' AND NOT c.convalidated
    LOOP
        EXECUTE format('ALTER TABLE eventsql.%I VALIDATE CONSTRAINT eventsql_end', name);
    END LOOP;
END $$;

-- Ends a partition's active segment before it is full, if it is to end, and replaces the spare segments above it. Returns
-- 'ended'; 'none' if it is not to end; 'large' if its end is to be proved first (begin_segment_end_v1,
-- check_segment_end_v1), because attaching it would read it.
--
-- Locks the row that every append locks first, so no append uses the partition's table, which is then locked without
-- waiting: a transaction that has read it by SQL makes this fail at once. Waits 100 ms at most for readers of the segment.
--
-- Errors: ES003 the transaction is not READ COMMITTED; 55P03 a lock was not available: repeat it later.
CREATE FUNCTION eventsql.end_segment_v1(p_stream_id int, p_partition int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    read_max_bytes CONSTANT bigint := 33554432; -- some 10 ms
    of_partition   text;
    segment        record;
    spare          record;
    proved_end     bigint;
    new_end        bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'ending a segment requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    SELECT format('eventsql.%I', s.table_name || '__p' || p_partition) INTO of_partition
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF NOT EXISTS (SELECT FROM eventsql.segment_to_end_v1(p_stream_id, p_partition)) THEN
        RETURN 'none';
    END IF;
    PERFORM pg_advisory_xact_lock(1163085127, hashtext(of_partition)); -- as for adding segments
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition
    FOR UPDATE;
    -- New statements see what was committed before the locks were granted.
    SELECT * INTO segment FROM eventsql.segment_to_end_v1(p_stream_id, p_partition);
    IF NOT FOUND THEN
        RETURN 'none';
    END IF;
    SELECT substring(pg_get_constraintdef(c.oid) FROM '< ''?([0-9]+)')::bigint INTO proved_end
    FROM pg_constraint c
    WHERE c.conrelid = format('eventsql.%I', segment.table_name)::regclass AND c.conname = 'eventsql_end'
      AND c.convalidated;
    IF proved_end >= segment.head THEN
        new_end := proved_end;
    ELSIF pg_relation_size(format('eventsql.%I', segment.table_name)::regclass) <= read_max_bytes THEN
        new_end := segment.head;
    ELSE
        RETURN 'large';
    END IF;

    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', of_partition);
    EXECUTE format('ALTER TABLE %s DETACH PARTITION eventsql.%I', of_partition, segment.table_name);
    FOR spare IN -- they are empty, because the head is below them
        DELETE FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset > segment.first_offset
        RETURNING g.table_name
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS eventsql.%I', spare.table_name);
    END LOOP;
    -- A validated constraint spares it the scan.
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION eventsql.%I FOR VALUES FROM (%s) TO (%s)',
        of_partition, segment.table_name, segment.first_offset, new_end);
    EXECUTE format('ALTER TABLE eventsql.%I DROP CONSTRAINT IF EXISTS eventsql_end', segment.table_name);
    UPDATE eventsql.segment g SET end_offset = new_end
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset = segment.first_offset;
    PERFORM eventsql.add_segments_v1(p_stream_id, p_partition, 0);
    RETURN 'ended';
END $$;

-- Drops empty tables of expired segments: up to ten of one partition. Returns how many. The caller repeats the call in
-- another transaction until it returns 0.
--
-- Dropping a table locks that of the partition. No append uses it, because the row that every append locks first is locked
-- before. p_wait: waits 100 ms at most for transactions that have read the stream by SQL; appends to the partition and such
-- statements then wait, too. Otherwise does not wait: as long as there is such a transaction, the tables stay.
CREATE FUNCTION eventsql.drop_empty_segments_v1(p_wait boolean) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    dropped_max CONSTANT int := 10;
    of          record;
    segment     record;
    dropped     int := 0;
BEGIN
    DELETE FROM eventsql.segment g -- those dropped by hand
    WHERE g.state = 'empty' AND to_regclass(format('eventsql.%I', g.table_name)) IS NULL;
    FOR of IN
        SELECT g.stream_id, g.partition, format('eventsql.%I', s.table_name || '__p' || g.partition) AS parent
        FROM eventsql.segment g
        JOIN eventsql.stream s USING (stream_id)
        WHERE g.state = 'empty'
        GROUP BY g.stream_id, g.partition, s.table_name
        ORDER BY random() LIMIT CASE WHEN p_wait THEN 1 ELSE 100 END
    LOOP
        BEGIN
            PERFORM FROM eventsql.stream_partition p
            WHERE p.stream_id = of.stream_id AND p.partition = of.partition
            FOR UPDATE;
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE %s',
                of.parent, CASE WHEN p_wait THEN '' ELSE 'NOWAIT' END);
            FOR segment IN
                SELECT g.first_offset, g.table_name
                FROM eventsql.segment g
                WHERE g.stream_id = of.stream_id AND g.partition = of.partition AND g.state = 'empty'
                ORDER BY g.first_offset LIMIT dropped_max
            LOOP
                EXECUTE format('DROP TABLE IF EXISTS eventsql.%I', segment.table_name);
                DELETE FROM eventsql.segment g
                WHERE g.stream_id = of.stream_id AND g.partition = of.partition AND g.first_offset = segment.first_offset;
                dropped := dropped + 1;
            END LOOP;
            RETURN dropped;
        EXCEPTION WHEN lock_not_available THEN
            dropped := 0; -- a transaction has read the stream, or an append waits
        END;
    END LOOP;
    RETURN 0;
END $$;

-- Who may add segments may also remove them as the streams' policies say.
DO $$
DECLARE
    grantee text;
BEGIN
    REVOKE ALL ON FUNCTION eventsql.create_stream_v2, eventsql.alter_stream_v1, eventsql.retention_plan_v1,
        eventsql.expire_v1, eventsql.segments_to_end_v1, eventsql.begin_segment_end_v1, eventsql.check_segment_end_v1,
        eventsql.end_segment_v1, eventsql.drop_empty_segments_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.ensure_segments_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION eventsql.retention_plan_v1, eventsql.expire_v1, eventsql.segments_to_end_v1,'
            ' eventsql.begin_segment_end_v1, eventsql.check_segment_end_v1, eventsql.end_segment_v1,'
            ' eventsql.drop_empty_segments_v1 TO %s', grantee);
        EXECUTE format('GRANT SELECT ON eventsql.retention_status TO %s', grantee);
    END LOOP;
END $$;
