-- EventSQL: the state of all consumers, the process that reports it, and the events of a period of time.

INSERT INTO eventsql.schema_version (version, description) VALUES (10, 'consumer status');

-- Returns when the first event of a partition at or above an offset was published. Where no row says so, because the events
-- are missing from the log, or their segment is locked or being removed: when the last event was published, which is never
-- earlier.
--
-- Index: the primary key of segment (segment_at_v1), then that of the segment's table. The table is named, so the cost does
-- not depend on the number of segments. Waits for no lock of a segment for longer than 100 ms.
CREATE FUNCTION eventsql.published_at_v1(p_stream_id int, p_partition int, p_offset bigint, p_last timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET lock_timeout = '100ms'
AS $$
DECLARE
    -- Compaction may leave a segment without a row.
    segments_max CONSTANT int := 10;
    next_offset  bigint := p_offset;
    segment      record;
    found        timestamptz;
BEGIN
    FOR i IN 1 .. segments_max LOOP
        segment := eventsql.segment_at_v1(p_stream_id, p_partition, next_offset);
        EXIT WHEN to_regclass('eventsql.' || quote_ident(segment.table_name)) IS NULL;
        BEGIN
            EXECUTE format(
                'SELECT published_at FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT 1',
                segment.table_name)
            INTO found USING p_offset;
        EXCEPTION WHEN lock_not_available OR undefined_table THEN
            EXIT;
        END;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
        next_offset := segment.end_offset;
    END LOOP;
    RETURN p_last;
END $$;

-- Returns the state of each partition of the consumers on this shard: of one, or, if p_consumer_id is NULL, of the first
-- p_consumers_max in the order of their creation. The living members of a consumer are listed with its partition 0.
--
-- The cost depends on the number of partitions only: heads, offsets and the newest parked events are the last entries of
-- their index ranges, parked events and keys are counted up to p_parked_events_max, and only a partition that is behind is
-- asked for the time of its next event. One snapshot, so an offset is never beyond its head.
CREATE FUNCTION eventsql.consumers_v1(p_consumer_id int, p_consumers_max int, p_parked_events_max int)
RETURNS TABLE (
    stream text, consumer text, members text[], partition int, state text, error text, state_since timestamptz,
    log_start bigint, head bigint, next_offset bigint, lag_ms bigint, committed_at timestamptz, epoch bigint,
    member text, expires_at timestamptz, parked_keys int, parked_events int, parked_error text, parked_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT s.name, c.name,
           CASE WHEN p.partition = 0 THEN ARRAY(
               SELECT m.name FROM eventsql.consumer_member m
               WHERE m.consumer_id = c.consumer_id AND m.expires_at > clock_timestamp()) END,
           p.partition, p.state, p.error, p.state_since,
           t.log_start, h.next_offset, o.next_offset,
           CASE WHEN h.next_offset <= greatest(o.next_offset, t.log_start) THEN 0
                ELSE greatest(0, extract(epoch FROM clock_timestamp() - eventsql.published_at_v1(
                    s.stream_id, p.partition, greatest(o.next_offset, t.log_start), h.published_at)) * 1000)::bigint
           END,
           o.committed_at, o.epoch,
           coalesce(owner.name, p.member_id::text), p.expires_at,
           (SELECT count(*)::int FROM (
               SELECT FROM eventsql.parked_key k
               WHERE k.consumer_id = p.consumer_id AND k.partition = p.partition
               LIMIT p_parked_events_max) k),
           (SELECT count(*)::int FROM (
               SELECT FROM eventsql.parked_event e
               WHERE e.consumer_id = p.consumer_id AND e.partition = p.partition
               LIMIT p_parked_events_max) e),
           newest.error, newest.parked_at
    FROM (
        SELECT * FROM eventsql.consumer k
        WHERE p_consumer_id IS NULL OR k.consumer_id = p_consumer_id
        ORDER BY k.consumer_id LIMIT p_consumers_max) c
    JOIN eventsql.stream s USING (stream_id)
    JOIN eventsql.consumer_partition p USING (consumer_id)
    JOIN eventsql.stream_partition t ON t.stream_id = c.stream_id AND t.partition = p.partition
    LEFT JOIN eventsql.consumer_member owner ON owner.consumer_id = p.consumer_id AND owner.member_id = p.member_id
    CROSS JOIN LATERAL (
        SELECT n.next_offset, n.committed_at, n.epoch FROM eventsql.consumer_offset n
        WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
        ORDER BY n.commit_number DESC LIMIT 1) o
    CROSS JOIN LATERAL (
        SELECT b.next_offset, b.published_at FROM eventsql.producer_batch b
        WHERE b.stream_id = c.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    LEFT JOIN LATERAL (
        SELECT e.error, e.parked_at FROM eventsql.parked_event e
        WHERE e.consumer_id = p.consumer_id AND e.partition = p.partition
        ORDER BY e.event_offset DESC LIMIT 1) newest ON true
    ORDER BY c.consumer_id, p.partition;
END $$;

-- Returns the state of the first p_consumers_max consumers on this shard, in sums over their partitions, at the cost of
-- consumers_v1. lag_ms is the age of the oldest event that a consumer has not handled.
CREATE FUNCTION eventsql.consumer_summaries_v2(p_consumers_max int, p_parked_events_max int)
RETURNS TABLE (
    stream text, consumer text, members int, partitions int, stopped_partitions int, paused_partitions int,
    unassigned_partitions int, lag bigint, lag_ms bigint, next_offsets bigint, parked_events int, dead_letters int)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT s.name, c.name,
           (SELECT count(*)::int FROM eventsql.consumer_member m
            WHERE m.consumer_id = c.consumer_id AND m.expires_at > clock_timestamp()),
           sums.partitions, sums.stopped, sums.paused, sums.unassigned, sums.lag,
           coalesce(greatest(0, extract(epoch FROM clock_timestamp() - sums.oldest) * 1000)::bigint, 0),
           sums.next_offsets, parked.events, parked.dead_letters
    FROM (SELECT * FROM eventsql.consumer k ORDER BY k.consumer_id LIMIT p_consumers_max) c
    JOIN eventsql.stream s USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS partitions,
               (count(*) FILTER (WHERE p.state = 'stopped'))::int AS stopped,
               (count(*) FILTER (WHERE p.state = 'paused'))::int AS paused,
               (count(*) FILTER (WHERE p.state = 'running'
                   AND (p.member_id IS NULL OR p.expires_at <= clock_timestamp())))::int AS unassigned,
               coalesce(sum(greatest(0, h.next_offset - greatest(o.next_offset, t.log_start))), 0)::bigint AS lag,
               min(CASE WHEN h.next_offset > greatest(o.next_offset, t.log_start) THEN eventsql.published_at_v1(
                   c.stream_id, p.partition, greatest(o.next_offset, t.log_start), h.published_at) END) AS oldest,
               coalesce(sum(o.next_offset), 0)::bigint AS next_offsets
        FROM eventsql.consumer_partition p
        JOIN eventsql.stream_partition t ON t.stream_id = c.stream_id AND t.partition = p.partition
        CROSS JOIN LATERAL (
            SELECT n.next_offset FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        CROSS JOIN LATERAL (
            SELECT b.next_offset, b.published_at FROM eventsql.producer_batch b
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

-- The process that reports the consumers of this database, until its lease expires.
CREATE TABLE eventsql.consumer_reporter (
    singleton   boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    reporter_id uuid,
    expires_at  timestamptz NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
INSERT INTO eventsql.consumer_reporter (reporter_id, expires_at) VALUES (NULL, clock_timestamp());

-- Returns what consumer_summaries_v2 does, if the caller is the process that reports the consumers of this database, or
-- becomes it because no other process's lease is valid; renews its lease. The first row has no consumer: it says that the
-- caller reports. No row: another process reports, or is being asked at this moment.
--
-- One transaction, because poolers lend each to another client. The lock of the one row is awaited by no call, so calls
-- never queue. Returning from a lease in the far future: the database's clock was set back.
CREATE FUNCTION eventsql.report_consumers_v1(
    p_reporter uuid, p_lease interval, p_consumers_max int, p_parked_events_max int)
RETURNS TABLE (
    stream text, consumer text, members int, partitions int, stopped_partitions int, paused_partitions int,
    unassigned_partitions int, lag bigint, lag_ms bigint, next_offsets bigint, parked_events int, dead_letters int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET lock_timeout = '2s'
AS $$
BEGIN
    PERFORM eventsql.do_not_await_replicas_v1();
    PERFORM FROM eventsql.consumer_reporter r WHERE r.singleton FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- A new statement sees what was committed before the lock was granted.
    UPDATE eventsql.consumer_reporter r
    SET reporter_id = p_reporter, expires_at = clock_timestamp() + p_lease
    WHERE r.singleton
      AND (r.reporter_id IS NULL OR r.reporter_id = p_reporter OR r.expires_at <= clock_timestamp()
           OR r.expires_at > clock_timestamp() + 10 * p_lease);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN NEXT;
    RETURN QUERY SELECT * FROM eventsql.consumer_summaries_v2(p_consumers_max, p_parked_events_max);
END $$;

-- Ends the lease of a process that reports no longer, so that another one begins at once.
CREATE FUNCTION eventsql.end_report_v1(p_reporter uuid) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '1s'
AS $$
BEGIN
    PERFORM eventsql.do_not_await_replicas_v1();
    UPDATE eventsql.consumer_reporter r SET reporter_id = NULL WHERE r.singleton AND r.reporter_id = p_reporter;
END $$;

-- Returns the events of a stream on this shard that were published from p_from on and before p_to, by partition and offset.
--
-- A condition on published_at alone makes PostgreSQL plan, lock and read every segment of the stream's table. Here the
-- offsets at both times are found by their primary keys (offset_at_v1), and the catalog names the segments between them:
-- no other segment is planned, locked or read. The result is kept in work_mem, beyond that in a temporary file.
CREATE FUNCTION eventsql.events_between_v1(p_stream text, p_from timestamptz, p_to timestamptz)
RETURNS TABLE (
    partition int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz,
    erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    of_partition record;
    segment      record;
    from_offset  bigint;
    to_offset    bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM eventsql.stream s WHERE s.name = p_stream) THEN
        RAISE EXCEPTION 'stream % does not exist', p_stream USING ERRCODE = 'no_data_found';
    END IF;
    FOR of_partition IN
        SELECT p.stream_id, p.partition
        FROM eventsql.stream s
        JOIN eventsql.stream_partition p USING (stream_id)
        WHERE s.name = p_stream
        ORDER BY p.stream_id, p.partition
    LOOP
        from_offset := eventsql.offset_at_v1(p_stream, of_partition.partition, p_from);
        to_offset := eventsql.offset_at_v1(p_stream, of_partition.partition, p_to);
        WHILE from_offset < to_offset LOOP
            segment := eventsql.segment_at_v1(of_partition.stream_id, of_partition.partition, from_offset);
            EXIT WHEN segment.table_name IS NULL; -- expired since
            RETURN QUERY EXECUTE format(
                'SELECT partition, event_offset, key, value, headers, published_at, erased_at FROM eventsql.%I'
                ' WHERE event_offset >= $1 AND event_offset < $2 ORDER BY event_offset', segment.table_name)
            USING from_offset, to_offset;
            from_offset := segment.end_offset;
        END LOOP;
    END LOOP;
END $$;

-- Where roles.sql was applied, which revokes append_v1 from PUBLIC, every process that publishes or consumes can report from
-- now on; roles.sql grants it to readers, too.
DO $$
DECLARE
    grantee text;
BEGIN
    IF EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        RETURN;
    END IF;
    ALTER FUNCTION eventsql.report_consumers_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    ALTER FUNCTION eventsql.end_report_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    REVOKE ALL ON FUNCTION eventsql.report_consumers_v1, eventsql.end_report_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION eventsql.report_consumers_v1, eventsql.end_report_v1 TO %s', grantee);
    END LOOP;
END $$;
