-- EventSQL: events scheduled for a time, kept until the relay appends them to their streams when they are due. In the database
-- of every outbox, because an event can also be scheduled in a transaction of the application.
--
-- A row is in exactly one of two places: here, or where the relay has moved it in the transaction that deleted it here.

INSERT INTO eventsql.schema_version (version, description) VALUES (22, 'scheduled events');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- Events until they are due. One table for each hour of the next four, in a ring of eight: a table whose hours have passed is
-- emptied by TRUNCATE, which works next to old snapshots. Events that are due later wait in one table more (ring 8), from which
-- the relay moves them to that of their hour two hours before they are due. So no table is ever created or dropped, and there
-- is one for any time.
--
-- The id begins with due_at in milliseconds, so the order of ids is that of (due_at, id).
CREATE TABLE eventsql.scheduled_event (
    ring         smallint    NOT NULL,                 -- the hour of due_at modulo 8; 8: later
    due_at       timestamptz NOT NULL,
    id           uuid        NOT NULL,                 -- made by the client
    stream       text        NOT NULL,
    key          text,
    value        bytea,                                -- NULL: a tombstone
    headers      json,
    routing_hash int         NOT NULL,                 -- routes an event without a key
    written_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (due_at, id, ring),
    CONSTRAINT scheduled_event_tombstone_key CHECK (value IS NOT NULL OR key IS NOT NULL),
    CONSTRAINT scheduled_event_headers_object CHECK ( -- as in outbox
        headers IS NULL
        OR json_typeof(headers) = 'object'
           AND (strpos(headers::text, '\u') = 0 OR jsonb_typeof(headers::jsonb) = 'object'))
) PARTITION BY LIST (ring);
ALTER TABLE eventsql.scheduled_event
    ALTER COLUMN value SET STORAGE EXTERNAL,
    ALTER COLUMN value SET STATISTICS 0; -- samples of values would stay where no erasure finds them

DO $$
BEGIN
    FOR ring IN 0 .. 8 LOOP
        EXECUTE format(
            'CREATE TABLE eventsql.scheduled_event_%1$s PARTITION OF eventsql.scheduled_event FOR VALUES IN (%1$s)'
            ' WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,'
            ' autovacuum_vacuum_insert_threshold = -1, vacuum_truncate = false, toast.vacuum_truncate = false)', ring);
    END LOOP;
END $$;

-- Returns the number of the table for an event that is due at a time.
CREATE FUNCTION eventsql.scheduled_ring_v1(p_due timestamptz) RETURNS smallint
LANGUAGE sql
AS $$
    SELECT CASE WHEN p_due < clock_timestamp() + interval '4 hours'
        THEN mod(mod(floor(extract(epoch FROM p_due) / 3600)::bigint, 8) + 8, 8)::smallint
        ELSE 8::smallint END
$$;

-- Schedules an event. Returns in how many microseconds it is due, by this database's clock.
--
-- p_repeated: the event may be scheduled already, which is then the result. If it is due, it may have been moved as well: that
-- is an error, because it could be stored twice. The clock alone does not tell, after a failover to a server whose clock is
-- behind; but no event is stored in a partition at an earlier time than the one before.
-- p_incarnation: as in append_v1; NULL in a transaction of the application, where neither it nor the stream is checked.
--
-- Index: the primary key of each table. Locks nothing but the new row.
--
-- Errors: ES003 the transaction is not READ COMMITTED; ES004 there is no such stream; ES011 another incarnation; ES030 whether
-- it was stored cannot be determined any more; 23505 the id is in use.
CREATE FUNCTION eventsql.schedule_v1(
    p_id uuid, p_due timestamptz, p_stream text, p_key text, p_value bytea, p_headers text, p_routing_hash int,
    p_repeated boolean, p_incarnation text)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET lock_timeout = '5s'
AS $$
DECLARE
    inserted       int;
    last_published timestamptz;
BEGIN
    IF p_incarnation IS NOT NULL THEN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'scheduling requires isolation level READ COMMITTED, not %',
                current_setting('transaction_isolation') USING ERRCODE = 'ES003';
        END IF;
        IF current_setting('synchronous_commit') IN ('off', 'local') THEN
            PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
        IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
            PERFORM eventsql.reject_incarnation_v1(p_incarnation);
        END IF;
        IF NOT EXISTS (SELECT FROM eventsql.stream s WHERE s.name = p_stream) THEN
            RAISE EXCEPTION 'stream % does not exist', p_stream USING ERRCODE = 'ES004';
        END IF;
    END IF;
    -- In any table: it may have become due within four hours since it was scheduled.
    IF p_repeated AND EXISTS (SELECT FROM eventsql.scheduled_event e WHERE e.due_at = p_due AND e.id = p_id) THEN
        RETURN floor(extract(epoch FROM p_due - clock_timestamp()) * 1000000);
    END IF;
    INSERT INTO eventsql.scheduled_event (ring, due_at, id, stream, key, value, headers, routing_hash)
    VALUES (eventsql.scheduled_ring_v1(p_due), p_due, p_id, p_stream, p_key, p_value, p_headers::json, p_routing_hash)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted = 0 AND NOT p_repeated THEN
        RAISE EXCEPTION 'an event is scheduled under the id % already', p_id USING ERRCODE = 'unique_violation';
    ELSIF inserted = 1 AND p_repeated THEN -- never in a database that is no shard
        SELECT max(h.published_at) INTO last_published
        FROM eventsql.stream s
        JOIN eventsql.stream_partition p USING (stream_id)
        CROSS JOIN LATERAL (
            SELECT b.published_at FROM eventsql.producer_batch b
            WHERE b.stream_id = p.stream_id AND b.partition = p.partition
            ORDER BY b.next_offset DESC LIMIT 1) h
        WHERE s.name = p_stream;
        IF p_due <= greatest(clock_timestamp(), last_published) THEN
            RAISE EXCEPTION 'event % was due at %, so it may have been appended to its stream already', p_id, p_due
                USING ERRCODE = 'ES030';
        END IF;
    END IF;
    RETURN floor(extract(epoch FROM p_due - clock_timestamp()) * 1000000);
END $$;

-- Cancels a scheduled event. Returns whether it was still scheduled, so that it will not be appended.
--
-- Index: the primary key of each table. Locks the deleted row. 40001: the row has just been moved to another table; to be repeated.
CREATE FUNCTION eventsql.cancel_scheduled_v1(p_id uuid, p_due timestamptz) RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET lock_timeout = '5s'
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    DELETE FROM eventsql.scheduled_event e WHERE e.due_at = p_due AND e.id = p_id;
    RETURN FOUND;
END $$;

-- Returns scheduled events in the order in which they are due, after one of them. Without their values.
--
-- Index: the primary keys in their order; of the other streams, all that are due earlier are read.
CREATE FUNCTION eventsql.scheduled_events_v1(p_stream text, p_after_due timestamptz, p_after_id uuid, p_max int)
RETURNS TABLE (
    id uuid, due_at timestamptz, stream text, key text, value_bytes bigint, written_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT e.id, e.due_at, e.stream, e.key, octet_length(e.value)::bigint, e.written_at
    FROM eventsql.scheduled_event e
    WHERE (e.due_at, e.id) > (p_after_due, p_after_id) AND (p_stream IS NULL OR e.stream = p_stream)
    ORDER BY e.due_at, e.id LIMIT p_max;
END $$;

-- Returns how many events are scheduled, counted up to p_limit and estimated above, and for how long the first one has been due;
-- 0: it is not due yet.
CREATE FUNCTION eventsql.scheduled_backlog_v1(p_limit int, OUT events bigint, OUT overdue_ms bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
BEGIN
    SELECT count(*) INTO events FROM (SELECT FROM eventsql.scheduled_event e ORDER BY e.due_at, e.id LIMIT p_limit) c;
    IF events >= p_limit THEN
        SELECT greatest(events, sum(c.reltuples)::bigint) INTO events
        FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'eventsql.scheduled_event'::regclass;
    END IF;
    SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT e.due_at FROM eventsql.scheduled_event e ORDER BY e.due_at, e.id LIMIT 1)) * 1000), 0)::bigint
    INTO overdue_ms;
END $$;

-- Returns in how many microseconds the next event is due, of those that are due from p_from on; NULL: there is none.
--
-- Index: the primary key of each table, from p_from on: row versions of events that were moved before are not visited.
CREATE FUNCTION eventsql.next_due_v1(p_from timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS $$
DECLARE
    next_due timestamptz;
BEGIN
    SELECT e.due_at INTO next_due FROM eventsql.scheduled_event e WHERE e.due_at >= p_from ORDER BY e.due_at, e.id LIMIT 1;
    RETURN floor(extract(epoch FROM next_due - clock_timestamp()) * 1000000);
END $$;

-- Takes a page of events that are due, from p_from on: locks the relay's row, then deletes and returns them in the order of
-- (due_at, id). A page is limited as in relay_take_v1. Skips what another transaction has locked, such as to cancel it: an event
-- of a cancellation that is rolled back is taken later.
--
-- Index: the primary key of each table, from p_from on. Locks the relay's row and the deleted rows.
--
-- Errors: those of relay_lock_v1.
CREATE FUNCTION eventsql.take_due_v1(
    p_holder uuid, p_epoch bigint, p_timeout_ms int, p_max_events int, p_max_bytes bigint, p_from timestamptz)
RETURNS TABLE (
    producer_id uuid, id uuid, due_at timestamptz, stream text, key text, value bytea, headers text, routing_hash int,
    written_at timestamptz)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    producer uuid := eventsql.relay_lock_v1(p_holder, p_epoch, p_timeout_ms);
    upto     timestamptz := clock_timestamp();
BEGIN
    -- A new statement has a new snapshot: it sees everything committed before the lock was granted.
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT e.ring, e.due_at, e.id, coalesce(octet_length(e.value), 0) AS bytes
        FROM eventsql.scheduled_event e
        WHERE e.due_at >= p_from AND e.due_at <= upto
        ORDER BY e.due_at, e.id LIMIT p_max_events
        FOR UPDATE SKIP LOCKED
    ), page AS MATERIALIZED (
        SELECT c.ring, c.due_at, c.id
        FROM (
            SELECT d.*, sum(d.bytes) OVER (ORDER BY d.due_at, d.id ROWS UNBOUNDED PRECEDING) - d.bytes AS bytes_before
            FROM due d) c
        WHERE c.bytes_before < p_max_bytes
    ), taken AS (
        DELETE FROM eventsql.scheduled_event e
        USING page p
        WHERE e.ring = p.ring AND e.due_at = p.due_at AND e.id = p.id
        RETURNING e.id, e.due_at, e.stream, e.key, e.value, e.headers, e.routing_hash, e.written_at
    )
    SELECT producer, t.id, t.due_at, t.stream, t.key, t.value, t.headers::text, t.routing_hash, t.written_at
    FROM taken t
    ORDER BY t.due_at, t.id;
END $$;

-- Moves events that are due within two hours from ring 8 to that of their hour, in a transaction of the relay. Returns how many.
--
-- UPDATE, because a concurrent DELETE of a row then fails with 40001 and is repeated, where it would miss an inserted copy.
CREATE FUNCTION eventsql.advance_scheduled_v1(p_max int) RETURNS int
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    moved int;
BEGIN
    WITH next AS MATERIALIZED (
        SELECT e.due_at, e.id FROM eventsql.scheduled_event e
        WHERE e.ring = 8 AND e.due_at < clock_timestamp() + interval '2 hours'
        ORDER BY e.due_at, e.id LIMIT p_max
        FOR UPDATE SKIP LOCKED
    )
    UPDATE eventsql.scheduled_event e SET ring = eventsql.scheduled_ring_v1(e.due_at)
    FROM next n
    WHERE e.ring = 8 AND e.due_at = n.due_at AND e.id = n.id;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved;
END $$;

-- Deletes the scheduled events of a stream that is cleared or deleted; returns how many. Reads all scheduled events.
CREATE FUNCTION eventsql.delete_scheduled_v1(p_stream text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    deleted bigint;
BEGIN
    DELETE FROM eventsql.scheduled_event e WHERE e.stream = p_stream;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

-- As in version 14, also with scheduled events, which have no offset yet either.
CREATE OR REPLACE FUNCTION eventsql.erase_outbox_step_v1(
    p_erasure uuid, p_max_rows int, OUT phase text, OUT erased bigint, OUT is_waiting boolean, OUT reason text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    tables CONSTANT text[] := ARRAY[
        'outbox_0', 'outbox_1', 'outbox_2', 'outbox_3', 'outbox_transfer', 'outbox_refused',
        'scheduled_event_0', 'scheduled_event_1', 'scheduled_event_2', 'scheduled_event_3', 'scheduled_event_4',
        'scheduled_event_5', 'scheduled_event_6', 'scheduled_event_7', 'scheduled_event_8'];
    scheduled bigint;
    own     eventsql.outbox_erasure;
    changed bigint := 0;
BEGIN
    SELECT * INTO own FROM eventsql.outbox_erasure e WHERE e.erasure_id = p_erasure FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no erasure %, or a later one of its key has replaced it', p_erasure
            USING ERRCODE = 'ES018';
    END IF;
    is_waiting := false;
    phase := own.phase;
    CASE own.phase
        WHEN 'outbox' THEN
            DELETE FROM eventsql.outbox o
            WHERE (o.id, o.ring) IN (
                SELECT w.id, w.ring FROM eventsql.outbox w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND w.value IS NOT NULL
                LIMIT p_max_rows);
            GET DIAGNOSTICS changed = ROW_COUNT;
            -- Tombstones stay: consumers still have to delete what they know of the key.
            UPDATE eventsql.outbox o SET headers = NULL
            WHERE o.stream = own.stream AND o.key = own.key AND o.written_at <= own.started_at AND o.value IS NULL
              AND o.headers IS NOT NULL;
            DELETE FROM eventsql.scheduled_event e
            WHERE (e.due_at, e.id, e.ring) IN (
                SELECT w.due_at, w.id, w.ring FROM eventsql.scheduled_event w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND w.value IS NOT NULL
                LIMIT p_max_rows);
            GET DIAGNOSTICS scheduled = ROW_COUNT;
            changed := changed + scheduled;
            UPDATE eventsql.scheduled_event e SET headers = NULL
            WHERE e.stream = own.stream AND e.key = own.key AND e.written_at <= own.started_at AND e.value IS NULL
              AND e.headers IS NOT NULL;
            phase := CASE WHEN EXISTS (
                SELECT FROM eventsql.outbox w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND (w.value IS NOT NULL OR w.headers IS NOT NULL))
            OR EXISTS (
                SELECT FROM eventsql.scheduled_event w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND (w.value IS NOT NULL OR w.headers IS NOT NULL))
                THEN phase ELSE 'transfer' END;
        WHEN 'transfer' THEN
            -- A snapshot from before compact_transfer_v1 would see the table empty.
            LOCK TABLE eventsql.outbox_transfer IN ROW EXCLUSIVE MODE;
            -- A tombstone stays one.
            UPDATE eventsql.outbox_transfer t
            SET value = CASE WHEN t.value IS NULL THEN NULL ELSE ''::bytea END, headers = NULL,
                erased_at = clock_timestamp()
            WHERE (t.shard, t.number) IN (
                SELECT w.shard, w.number FROM eventsql.outbox_transfer w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND w.erased_at IS NULL
                LIMIT p_max_rows);
            GET DIAGNOSTICS changed = ROW_COUNT;
            phase := CASE WHEN EXISTS (
                SELECT FROM eventsql.outbox_transfer w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND w.erased_at IS NULL)
                THEN phase ELSE 'refused' END;
        WHEN 'refused' THEN
            DELETE FROM eventsql.outbox_refused r
            WHERE r.refused_id IN (
                SELECT w.refused_id FROM eventsql.outbox_refused w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND w.value IS NOT NULL
                LIMIT p_max_rows);
            GET DIAGNOSTICS changed = ROW_COUNT;
            UPDATE eventsql.outbox_refused r SET headers = NULL
            WHERE r.stream = own.stream AND r.key = own.key AND r.written_at <= own.started_at AND r.value IS NULL
              AND r.headers IS NOT NULL;
            phase := CASE WHEN EXISTS (
                SELECT FROM eventsql.outbox_refused w
                WHERE w.stream = own.stream AND w.key = own.key AND w.written_at <= own.started_at
                  AND (w.value IS NOT NULL OR w.headers IS NOT NULL))
                THEN phase ELSE 'sending' END;
        WHEN 'sending' THEN
            LOCK TABLE eventsql.outbox_transfer IN ROW EXCLUSIVE MODE; -- as above
            is_waiting := EXISTS (
                SELECT FROM eventsql.outbox_transfer t
                WHERE t.stream = own.stream AND t.key = own.key AND t.erased_at IS NOT NULL);
            phase := CASE WHEN is_waiting THEN phase ELSE 'files' END;
            reason := CASE WHEN is_waiting THEN 'erased events are being sent to another database' END;
        WHEN 'files' THEN
            -- Also without any row of the key: what the relay has taken out remains in the files until they are rewritten.
            IF own.rewritten = cardinality(tables) THEN
                phase := 'done';
            ELSE
                reason := eventsql.rewrite_table_v1(
                    tables[own.rewritten + 1], coalesce(own.erased_in, '0'::xid8), 100);
                is_waiting := reason IS NOT NULL;
                own.rewritten := own.rewritten + CASE WHEN is_waiting THEN 0 ELSE 1 END;
            END IF;
        ELSE
            NULL;
    END CASE;
    erased := own.erased + changed;
    UPDATE eventsql.outbox_erasure e
    SET phase = erase_outbox_step_v1.phase, erased = erase_outbox_step_v1.erased, rewritten = own.rewritten,
        erased_in = CASE
            WHEN erase_outbox_step_v1.phase = 'files' AND own.phase = 'sending' THEN pg_current_xact_id()
            ELSE e.erased_in END
    WHERE e.erasure_id = p_erasure;
END $$;

CREATE OR REPLACE FUNCTION eventsql.outbox_erasure_v1(p_erasure uuid) RETURNS TABLE (phase text, erased bigint, tables int)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.phase, e.erased, CASE WHEN e.phase = 'files' THEN 15 - e.rewritten ELSE 0 END
    FROM eventsql.outbox_erasure e WHERE e.erasure_id = p_erasure
$$;

REVOKE ALL ON FUNCTION eventsql.delete_scheduled_v1 FROM PUBLIC;
