-- EventSQL: the outbox, for events published inside a transaction of the application, and its relay.
--
-- Every shard has an outbox. A database that is not a shard but needs an outbox gets the files of this folder alone;
-- they depend on no other file.
--
-- The schema "eventsql" must exist. To use another name, replace "eventsql." in all files.

-- The SQL files that were applied to this database. Each file records itself.
CREATE TABLE eventsql.schema_version (
    version      int         PRIMARY KEY,
    description  text        NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO eventsql.schema_version (version, description) VALUES (1, 'outbox');

-- Identifies the history of this database. A failover, a restart and a restore change what incarnation_v1 returns; what a
-- process remembers of the database counts only while that stays the same.
--
-- Restoring a dump inserts the row anew, into another table: then its xmin is no longer the transaction recorded in it,
-- and its file is another one, as in a copy made with CREATE DATABASE … TEMPLATE. xmin survives freezing.
CREATE TABLE eventsql.incarnation (
    singleton  boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    id         uuid        NOT NULL,
    written_in xid8        NOT NULL,                   -- the transaction that wrote this row
    written_to text        NOT NULL,                   -- the file of this table then
    since      timestamptz NOT NULL,
    reason     text        NOT NULL
);
INSERT INTO eventsql.incarnation (id, written_in, written_to, since, reason)
VALUES (gen_random_uuid(), pg_current_xact_id(), pg_relation_filepath('eventsql.incarnation'), clock_timestamp(),
        'created');

-- Returns the incarnation of this database: the id in its table, and the start time of the server, or the WAL timeline
-- where a service withholds that. NULL if the row was not written by this database: it was restored or copied, and that is
-- not recorded yet.
--
-- All roles read the same, because the function runs with the rights of its owner. Reads one row by its primary key; takes
-- no row lock.
CREATE FUNCTION eventsql.incarnation_v1() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    written text;
BEGIN
    SELECT i.id::text INTO written
    FROM eventsql.incarnation i
    WHERE i.singleton AND i.xmin = i.written_in::xid AND i.written_to = pg_relation_filepath(i.tableoid);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    BEGIN
        RETURN written || '..' || (date_part('epoch', pg_postmaster_start_time()) * 1000000)::bigint;
    EXCEPTION WHEN OTHERS THEN
        NULL; -- withheld
    END;
    BEGIN
        RETURN written || '.' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || '.';
    EXCEPTION WHEN OTHERS THEN
        RETURN written || '..'; -- withheld, too, or in recovery
    END;
END $$;

-- Records that this database was restored to an earlier state, so that running processes check what they remember of it.
-- To be called after every restore. Returns the new incarnation. Only the owner of the tables can call it.
CREATE FUNCTION eventsql.declare_restored(p_reason text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO eventsql.incarnation AS i (id, written_in, written_to, since, reason)
    VALUES (gen_random_uuid(), pg_current_xact_id(), pg_relation_filepath('eventsql.incarnation'), clock_timestamp(),
            p_reason)
    ON CONFLICT (singleton) DO UPDATE
    SET id = excluded.id, written_in = excluded.written_in, written_to = excluded.written_to, since = excluded.since,
        reason = excluded.reason;
    IF eventsql.incarnation_v1() IS NULL THEN
        -- A subtransaction has an id of its own, which would be the row's xmin.
        RAISE EXCEPTION 'declare_restored must not be called after a savepoint or in a block with an exception handler';
    END IF;
    RETURN eventsql.incarnation_v1();
END $$;

-- Returns the incarnation, and records a new one first if this database was restored or copied since the last one was
-- recorded. NULL if the table is empty or has no primary key: restoring a dump creates that only when the rows of all tables
-- are there, and until then nothing may be stored. Locks the row only to write it.
CREATE FUNCTION eventsql.find_incarnation_v1() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    found_one text := eventsql.incarnation_v1();
BEGIN
    IF found_one IS NOT NULL THEN
        RETURN found_one;
    END IF;
    -- Of two concurrent calls the second waits for the first, and then finds a row that matches.
    UPDATE eventsql.incarnation i
    SET id = gen_random_uuid(), written_in = pg_current_xact_id(), written_to = pg_relation_filepath(i.tableoid),
        since = clock_timestamp(), reason = 'the database was restored or copied'
    WHERE NOT (i.xmin = i.written_in::xid AND i.written_to = pg_relation_filepath(i.tableoid))
      AND EXISTS (SELECT FROM pg_index x WHERE x.indrelid = i.tableoid AND x.indisprimary);
    RETURN eventsql.incarnation_v1();
END $$;

-- Its last_value is the ring table that new events are written to. A sequence has no old row versions: every publish
-- reads it, and a table row would gain a version with each change for as long as an old snapshot is open.
CREATE SEQUENCE eventsql.outbox_ring AS smallint MINVALUE 0 MAXVALUE 3;

CREATE SEQUENCE eventsql.outbox_id;

-- Events published inside a transaction, until the relay has taken them. A ring of tables: one receives new events
-- while the others are emptied by TRUNCATE, which works next to old snapshots. A table can be emptied as soon as the
-- transactions that wrote to it have ended.
--
-- vacuum_truncate is off on all tables that are written to all the time: at its end, a vacuum would lock the table
-- exclusively to give free pages at the end of the file back, which queues publishers and cancels queries on standbys.
CREATE TABLE eventsql.outbox (
    ring         smallint    NOT NULL,
    id           bigint      NOT NULL DEFAULT nextval('eventsql.outbox_id'),
    stream       text        NOT NULL,
    key          text,
    value        bytea       NOT NULL,
    headers      json,
    routing_hash int         NOT NULL,                 -- routes an event without a key; equal for one call
    written_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, ring),
    -- An object that JSON operators accept: these reject NUL characters, which only an escape can contain. The library
    -- writes no other headers; rows that are inserted with SQL are checked here, where they enter.
    CONSTRAINT outbox_headers_object CHECK (
        headers IS NULL
        OR json_typeof(headers) = 'object'
           AND (strpos(headers::text, '\u') = 0 OR jsonb_typeof(headers::jsonb) = 'object'))
) PARTITION BY LIST (ring);
ALTER TABLE eventsql.outbox ALTER COLUMN value SET STORAGE EXTERNAL;

CREATE TABLE eventsql.outbox_0 PARTITION OF eventsql.outbox FOR VALUES IN (0)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
          vacuum_truncate = false, toast.vacuum_truncate = false);
CREATE TABLE eventsql.outbox_1 PARTITION OF eventsql.outbox FOR VALUES IN (1)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
          vacuum_truncate = false, toast.vacuum_truncate = false);
CREATE TABLE eventsql.outbox_2 PARTITION OF eventsql.outbox FOR VALUES IN (2)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
          vacuum_truncate = false, toast.vacuum_truncate = false);
CREATE TABLE eventsql.outbox_3 PARTITION OF eventsql.outbox FOR VALUES IN (3)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
          vacuum_truncate = false, toast.vacuum_truncate = false);

CREATE SEQUENCE eventsql.outbox_transfer_number;

-- Events on their way to another database, with their target partition, until that database has stored them. Numbers
-- are assigned under the relay's lock, so an event that becomes visible later always has a higher number.
CREATE TABLE eventsql.outbox_transfer (
    shard       int         NOT NULL,
    number      bigint      NOT NULL DEFAULT nextval('eventsql.outbox_transfer_number'),
    producer_id uuid        NOT NULL,                  -- the producer that the number belongs to
    stream      text        NOT NULL,
    partition   int         NOT NULL,
    key         text,
    value       bytea       NOT NULL,
    headers     json,
    written_at  timestamptz NOT NULL,
    PRIMARY KEY (shard, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        vacuum_truncate = false, toast.vacuum_truncate = false);
ALTER TABLE eventsql.outbox_transfer ALTER COLUMN value SET STORAGE EXTERNAL;

-- Events that cannot be appended, with the reason: their stream does not exist, or the database rejects them. The
-- library never deletes them; eventsql.retry_refused_events moves them back into the outbox.
CREATE TABLE eventsql.outbox_refused (
    refused_id bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream     text        NOT NULL,
    key        text,
    value      bytea       NOT NULL,
    headers    json,
    written_at timestamptz NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    error      text        NOT NULL
);

-- The lease of the relay. Each transaction of the relay locks this row and compares holder and epoch, because a lease
-- alone does not fence out a former holder.
CREATE TABLE eventsql.outbox_relay (
    singleton   boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    cluster_id  uuid,                                  -- the cluster that the events are for
    outbox_id   uuid        NOT NULL DEFAULT gen_random_uuid(), -- identifies this outbox to other databases
    producer_id uuid        NOT NULL DEFAULT gen_random_uuid(), -- the producer of its transfer numbers
    incarnation text        NOT NULL DEFAULT '',       -- the incarnation that the transfer numbers belong to
    epoch       bigint      NOT NULL DEFAULT 0,
    holder      uuid,
    expires_at  timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 20, vacuum_truncate = false);
INSERT INTO eventsql.outbox_relay DEFAULT VALUES;

-- Acquires, renews or checks the lease, in a transaction of its own. Returns the epoch of the lease that p_holder has
-- now (NULL if another process has it), and whether events are waiting. p_epoch is the lease that the caller believes
-- to have, 0 for none. Writes only to acquire a lease, and once in a third of its duration to renew it. A caller
-- without the lease may pass a channel, on which the holder is then notified.
CREATE FUNCTION eventsql.relay_poll_v1(p_holder uuid, p_epoch bigint, p_lease interval, p_channel text)
RETURNS TABLE (held_epoch bigint, waiting boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '2s'
AS $$
DECLARE
    relay               record;
    is_valid            boolean;
    -- Another one may have lost the end of the former: transfer numbers assigned there may be assigned again, so they
    -- must not belong to the same producer.
    current_incarnation text := eventsql.find_incarnation_v1();
BEGIN
    SELECT r.epoch, r.holder, r.expires_at, r.incarnation INTO relay FROM eventsql.outbox_relay r;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the table outbox_relay has no row; restore it with: INSERT INTO eventsql.outbox_relay DEFAULT VALUES'
            USING ERRCODE = 'no_data_found';
    END IF;
    -- A lease that ends far later than one that begins now is not valid: the clock was set back after it was renewed.
    is_valid := relay.expires_at BETWEEN clock_timestamp() AND clock_timestamp() + 10 * p_lease;

    IF relay.holder = p_holder AND relay.epoch = p_epoch AND relay.incarnation = current_incarnation THEN
        IF relay.expires_at NOT BETWEEN clock_timestamp() + p_lease * 2 / 3 AND clock_timestamp() + p_lease THEN
            UPDATE eventsql.outbox_relay r
            SET expires_at = clock_timestamp() + p_lease
            WHERE r.holder = p_holder AND r.epoch = p_epoch
            RETURNING r.epoch INTO held_epoch;
        ELSE
            held_epoch := p_epoch;
        END IF;
    ELSIF relay.holder IS NULL OR relay.holder = p_holder OR NOT is_valid THEN
        UPDATE eventsql.outbox_relay r
        SET epoch = r.epoch + 1,
            holder = p_holder,
            expires_at = clock_timestamp() + p_lease,
            producer_id = CASE WHEN r.incarnation = current_incarnation THEN r.producer_id ELSE gen_random_uuid() END,
            incarnation = current_incarnation
        WHERE r.epoch = relay.epoch AND r.holder IS NOT DISTINCT FROM relay.holder
          AND r.expires_at = relay.expires_at
        RETURNING r.epoch INTO held_epoch;
    ELSIF p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, '');
    END IF;

    waiting := held_epoch IS NOT NULL AND EXISTS (SELECT FROM eventsql.outbox);
    RETURN NEXT;
END $$;

-- The first statement of each transaction of the relay: locks its row until the end of the transaction, and returns the
-- outbox's producer id. A client that freezes inside the transaction loses the lock after p_timeout_ms. How long it may
-- wait for a lock, the client has set for the transaction.
--
-- Errors: ES003 the transaction is not READ COMMITTED; ES010 another process has the lease.
CREATE FUNCTION eventsql.relay_lock_v1(p_holder uuid, p_epoch bigint, p_timeout_ms int) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    producer uuid;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the relay requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', p_timeout_ms::text, true);
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    SELECT producer_id INTO producer
    FROM eventsql.outbox_relay
    WHERE holder = p_holder AND epoch = p_epoch AND incarnation = eventsql.incarnation_v1()
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the relay lease of % with epoch % has ended', p_holder, p_epoch USING ERRCODE = 'ES010';
    END IF;
    RETURN producer;
END $$;

-- Takes a page out of the outbox: locks the relay's row, then deletes and returns the visible events with the lowest
-- ids of all tables of the ring, in the order of their ids. A page has at most p_max_events events and ends with the
-- event that brings its values to p_max_bytes bytes. It never starts after the last id taken, because a lower one may
-- be committed later.
CREATE FUNCTION eventsql.relay_take_v1(
    p_holder uuid, p_epoch bigint, p_timeout_ms int, p_max_events int, p_max_bytes bigint)
RETURNS TABLE (
    producer_id uuid, id bigint, stream text, key text, value bytea, headers text, routing_hash int,
    written_at timestamptz)
LANGUAGE plpgsql
-- The tables are small but full of dead row versions, or large but never analyzed: only a scan of the primary key in
-- its order is ever right.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    producer uuid := eventsql.relay_lock_v1(p_holder, p_epoch, p_timeout_ms);
BEGIN
    -- A new statement has a new snapshot: it sees everything committed before the lock was granted.
    RETURN QUERY
    WITH taken AS (
        DELETE FROM eventsql.outbox o
        WHERE o.id <= (
            SELECT max(page.id)
            FROM (
                SELECT e.id,
                       sum(octet_length(e.value)) OVER (ORDER BY e.id ROWS UNBOUNDED PRECEDING)
                           - octet_length(e.value) AS bytes_before
                FROM (SELECT w.id, w.value FROM eventsql.outbox w ORDER BY w.id LIMIT p_max_events) e
            ) page
            WHERE page.bytes_before < p_max_bytes)
        RETURNING o.id, o.stream, o.key, o.value, o.headers, o.routing_hash, o.written_at
    )
    SELECT producer, t.id, t.stream, t.key, t.value, t.headers::text, t.routing_hash, t.written_at
    FROM taken t
    ORDER BY t.id;
END $$;

-- Reclaims the space of the transfer table, in a transaction of the relay: truncates it and inserts its events again
-- with their numbers. Does so only for a few events; returns whether it did. Fails with 55P03 instead of waiting for a
-- reader.
CREATE FUNCTION eventsql.compact_transfer_v1(p_max_events int, p_max_bytes bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    events eventsql.outbox_transfer[];
    bytes  bigint;
BEGIN
    LOCK TABLE ONLY eventsql.outbox_transfer IN ACCESS EXCLUSIVE MODE NOWAIT;
    SELECT sum(octet_length(t.value)) INTO bytes
    FROM (SELECT value FROM eventsql.outbox_transfer LIMIT p_max_events + 1) t
    HAVING count(*) <= p_max_events;
    IF NOT FOUND OR bytes > p_max_bytes THEN
        RETURN false;
    END IF;
    SELECT array_agg(t) INTO events FROM eventsql.outbox_transfer t;
    TRUNCATE ONLY eventsql.outbox_transfer;
    INSERT INTO eventsql.outbox_transfer SELECT * FROM unnest(events);
    RETURN true;
END $$;

-- Moves refused events back into the outbox, in the order in which they were refused: to be called with SQL once the
-- cause is removed. Those that the database rejects again are refused again. Returns the number of events moved.
--
-- p_stream: only events of this stream; NULL: of all streams. p_max_events: the maximum number moved by this call.
--
-- Index: the primary key of outbox_refused, in its order. Locks the rows that it moves.
CREATE FUNCTION eventsql.retry_refused_events(p_stream text DEFAULT NULL, p_max_events int DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    moved bigint;
BEGIN
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
        RETURNING r.refused_id, r.stream, r.key, r.value, r.headers
    )
    INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)
    SELECT (SELECT last_value FROM eventsql.outbox_ring), t.stream, t.key, t.value, t.headers, 0
    FROM taken t
    ORDER BY t.refused_id;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved;
END $$;
