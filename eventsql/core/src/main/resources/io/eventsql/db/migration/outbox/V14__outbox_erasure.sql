-- EventSQL: erasing the events of a key that wait in an outbox.

INSERT INTO eventsql.schema_version (version, description) VALUES (14, 'outbox erasure');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- When the event was erased; its value is empty then. The row stays, because its number must reach the other database: a
-- page that a sender has read before is rejected there once a later attempt with these numbers is stored.
ALTER TABLE eventsql.outbox_transfer ADD COLUMN erased_at timestamptz;

-- ANALYZE keeps samples of short values in pg_statistic, where no erasure finds them. It skips these columns from now on;
-- changing a column to the type that it has removes the samples taken before, and rewrites nothing.
ALTER TABLE eventsql.outbox
    ALTER COLUMN value TYPE bytea, ALTER COLUMN value SET STORAGE EXTERNAL, ALTER COLUMN value SET STATISTICS 0;
ALTER TABLE eventsql.outbox_transfer
    ALTER COLUMN value TYPE bytea, ALTER COLUMN value SET STORAGE EXTERNAL, ALTER COLUMN value SET STATISTICS 0;
ALTER TABLE eventsql.outbox_refused
    ALTER COLUMN value TYPE bytea, ALTER COLUMN value SET STATISTICS 0,
    ALTER COLUMN error TYPE text, ALTER COLUMN error SET STATISTICS 0;

-- The erasures of this outbox, one row for each.
CREATE TABLE eventsql.outbox_erasure (
    erasure_id uuid        PRIMARY KEY,
    stream     text        NOT NULL,
    key        text        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- what was written later is not erased
    phase      text        NOT NULL DEFAULT 'outbox'
               CONSTRAINT outbox_erasure_phase_known
               CHECK (phase IN ('outbox', 'transfer', 'refused', 'sending', 'files', 'done')),
    erased     bigint      NOT NULL DEFAULT 0,
    erased_in  xid8,                                   -- the transaction that erased the last row
    rewritten  int         NOT NULL DEFAULT 0          -- how many of the outbox's tables have been rewritten
);

-- Returns what keeps row versions from being removed that a transaction up to p_xid has replaced: a session, a prepared
-- transaction or a replication slot with an older snapshot. NULL if nothing does. Reads views that show this to every role.
--
-- The snapshot of the caller counts, too, and it is as old as the oldest transaction that was writing when it was taken, in
-- whatever database of the server: such a transaction delays the removal, although it cannot read the rows.
CREATE FUNCTION eventsql.older_snapshot_v1(p_xid xid8) RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own    xid8   := pg_current_xact_id(); -- what age() counts from in this transaction
    p_age  bigint := own::text::bigint - p_xid::text::bigint;
    oldest record;
BEGIN
    SELECT o.name INTO oldest
    FROM (
        SELECT 'the session with pid ' || a.pid AS name, greatest(age(a.backend_xid), CASE
                   WHEN a.datid IS NULL OR a.datname = current_database() THEN age(a.backend_xmin) END) AS age,
               false AS is_own
        FROM pg_stat_activity a
        WHERE a.pid <> pg_backend_pid()
        UNION ALL
        SELECT 'the prepared transaction ' || p.gid, age(p.transaction), false FROM pg_prepared_xacts p
        UNION ALL
        SELECT 'the replication slot ' || s.slot_name, age(s.xmin), false FROM pg_replication_slots s
        UNION ALL
        SELECT 'a transaction that has just ended', age(a.backend_xmin), true
        FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()
    ) o
    WHERE o.age >= p_age
    ORDER BY o.is_own, o.age DESC LIMIT 1;
    RETURN oldest.name;
END $$;

-- Writes the file of a table anew, in the order of its primary key, without the row versions that are removed: VACUUM
-- leaves their bytes in the free space of pages. Returns what prevents that, NULL if the table was rewritten. Locks the
-- table exclusively: others queue behind that lock, so it is awaited for p_lock_timeout_ms only; 0: not at all.
CREATE FUNCTION eventsql.rewrite_table_v1(p_table text, p_erased_in xid8, p_lock_timeout_ms int) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    holder text := eventsql.older_snapshot_v1(p_erased_in);
    index  text;
BEGIN
    IF holder IS NOT NULL THEN
        RETURN holder || ' keeps what was erased from being removed';
    END IF;
    BEGIN
        IF p_lock_timeout_ms > 0 THEN
            PERFORM set_config('lock_timeout', p_lock_timeout_ms || 'ms', true);
        END IF;
        EXECUTE format('LOCK TABLE eventsql.%I IN ACCESS EXCLUSIVE MODE', p_table)
            || CASE WHEN p_lock_timeout_ms > 0 THEN '' ELSE ' NOWAIT' END;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        RETURN format('a transaction that uses the table %s keeps it from being locked', p_table);
    END;
    SELECT format('%I', c.relname) INTO index
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass(format('eventsql.%I', p_table)) AND i.indisprimary;
    IF FOUND THEN
        EXECUTE format('CLUSTER eventsql.%I USING %s', p_table, index);
        EXECUTE format('ALTER TABLE eventsql.%I SET WITHOUT CLUSTER', p_table);
    END IF;
    -- Samples of values, where ANALYZE has read a segment that an earlier release has added.
    IF EXISTS (
        SELECT FROM pg_stats t
        WHERE t.tablename = p_table AND t.attname = 'value' AND t.schemaname = (
            SELECT c.relnamespace::regnamespace::text FROM pg_class c
            WHERE c.oid = to_regclass(format('eventsql.%I', p_table))))
    THEN
        EXECUTE format('ALTER TABLE eventsql.%I ALTER COLUMN value SET STATISTICS 1', p_table);
        EXECUTE format('ANALYZE eventsql.%I (value)', p_table);
        EXECUTE format('ALTER TABLE eventsql.%I ALTER COLUMN value SET STATISTICS 0', p_table);
    END IF;
    RETURN NULL;
END $$;

-- Begins the erasure of what a key has in this outbox. Does nothing if it has begun. Locks outbox_refused against
-- changes: events that are being moved back are in the outbox, and written before the erasure, when it begins.
CREATE FUNCTION eventsql.begin_outbox_erasure_v1(p_erasure uuid, p_stream text, p_key text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    LOCK TABLE eventsql.outbox_refused IN SHARE ROW EXCLUSIVE MODE;
    -- With those that this one replaces: it erases what they have left.
    DELETE FROM eventsql.outbox_erasure e
    WHERE e.phase = 'done' AND e.started_at < now() - interval '30 days'
       OR e.phase <> 'done' AND e.stream = p_stream AND e.key = p_key AND e.erasure_id <> p_erasure;
    INSERT INTO eventsql.outbox_erasure (erasure_id, stream, key) VALUES (p_erasure, p_stream, p_key)
    ON CONFLICT DO NOTHING;
END $$;

-- One step of an erasure, of at most p_max_rows rows, to be repeated in another transaction each time until the phase is
-- done. The tables are passed in the order in which the relay moves events. Events in the outbox and refused ones have
-- no offset yet: they are deleted. Those being sent to another database lose value and headers; the step returns
-- is_waiting until that database has stored them: only then does no sender have their values.
--
-- A phase ends when a new statement finds no more of its rows: those that the step has chosen may have been moved on by the
-- relay before it could lock them.
--
-- Reads each of the tables, which have no index of keys. Locks the rows that it changes.
CREATE FUNCTION eventsql.erase_outbox_step_v1(
    p_erasure uuid, p_max_rows int, OUT phase text, OUT erased bigint, OUT is_waiting boolean, OUT reason text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    tables CONSTANT text[] := ARRAY[
        'outbox_0', 'outbox_1', 'outbox_2', 'outbox_3', 'outbox_transfer', 'outbox_refused'];
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
            phase := CASE WHEN EXISTS (
                SELECT FROM eventsql.outbox w
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

-- Returns the progress of an erasure in this outbox, and how many tables may have values in their files.
CREATE FUNCTION eventsql.outbox_erasure_v1(p_erasure uuid) RETURNS TABLE (phase text, erased bigint, tables int)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.phase, e.erased, CASE WHEN e.phase = 'files' THEN 6 - e.rewritten ELSE 0 END
    FROM eventsql.outbox_erasure e WHERE e.erasure_id = p_erasure
$$;

-- As in version 1, but an event that is being erased is not moved back, unless it is a tombstone.
CREATE OR REPLACE FUNCTION eventsql.retry_refused_events(p_stream text DEFAULT NULL, p_max_events int DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    moved bigint;
BEGIN
    -- Waits for an erasure that begins; the next statement sees it.
    LOCK TABLE eventsql.outbox_refused IN ROW EXCLUSIVE MODE;
    WITH chosen AS (
        SELECT r.refused_id
        FROM eventsql.outbox_refused r
        WHERE p_stream IS NULL OR r.stream = p_stream
        ORDER BY r.refused_id
        LIMIT p_max_events
        FOR UPDATE
    ), taken AS (
        DELETE FROM eventsql.outbox_refused r
        USING chosen c
        WHERE r.refused_id = c.refused_id
        RETURNING r.refused_id, r.stream, r.key, r.value, r.headers, r.written_at
    )
    INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)
    SELECT (SELECT last_value FROM eventsql.outbox_ring), t.stream, t.key, t.value, t.headers, 0
    FROM taken t
    WHERE t.value IS NULL OR NOT EXISTS (
        SELECT FROM eventsql.outbox_erasure e
        WHERE e.phase IN ('outbox', 'transfer', 'refused') AND e.stream = t.stream AND e.key = t.key
          AND t.written_at <= e.started_at)
    ORDER BY t.refused_id;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved;
END $$;

REVOKE ALL ON FUNCTION
    eventsql.rewrite_table_v1, eventsql.begin_outbox_erasure_v1, eventsql.erase_outbox_step_v1,
    eventsql.outbox_erasure_v1 FROM PUBLIC;
