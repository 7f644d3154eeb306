-- EventSQL schema, version 3: the outbox, for events that are published inside a transaction of the application.
--
-- Every shard has it. A database that is no shard may have it alone, without versions 1 and 2.

CREATE TABLE IF NOT EXISTS eventsql.schema_version (
    version      int         PRIMARY KEY,
    description  text        NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO eventsql.schema_version (version, description) VALUES (3, 'outbox');

-- Its last_value: which table of the ring new events go to. A sequence, because it has no old versions: every publish
-- reads it, and a row would have one more for each change while an old snapshot is open.
CREATE SEQUENCE eventsql.outbox_ring AS smallint MINVALUE 0 MAXVALUE 3;

-- Events published inside a transaction, until the relay has taken them. A ring of tables: one is written to, and the
-- others are emptied by TRUNCATE, which no old snapshot hinders; each waits only for the transactions that wrote to it.
CREATE SEQUENCE eventsql.outbox_id;
CREATE TABLE eventsql.outbox (
    ring       smallint    NOT NULL,
    id         bigint      NOT NULL DEFAULT nextval('eventsql.outbox_id'),
    stream     text        NOT NULL,
    key        text,
    value      bytea       NOT NULL,
    headers    json,
    spread     int         NOT NULL,                   -- where an event without a key goes; the same for all of one call
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, ring)
) PARTITION BY LIST (ring);
ALTER TABLE eventsql.outbox ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE TABLE eventsql.outbox_0 PARTITION OF eventsql.outbox FOR VALUES IN (0)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
CREATE TABLE eventsql.outbox_1 PARTITION OF eventsql.outbox FOR VALUES IN (1)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
CREATE TABLE eventsql.outbox_2 PARTITION OF eventsql.outbox FOR VALUES IN (2)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
CREATE TABLE eventsql.outbox_3 PARTITION OF eventsql.outbox FOR VALUES IN (3)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);

-- Events taken from the outbox for another database, with the place they go to, until that database has them. A number
-- is given under the relay's lock: what becomes visible later always has a higher one.
CREATE SEQUENCE eventsql.outbox_transfer_number;
CREATE TABLE eventsql.outbox_transfer (
    shard       int         NOT NULL,
    number      bigint      NOT NULL DEFAULT nextval('eventsql.outbox_transfer_number'),
    producer_id uuid        NOT NULL,                  -- whose number it is
    stream      text        NOT NULL,
    partition   int         NOT NULL,
    key         text,
    value       bytea       NOT NULL,
    headers     json,
    written_at  timestamptz NOT NULL,
    PRIMARY KEY (shard, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
ALTER TABLE eventsql.outbox_transfer ALTER COLUMN value SET STORAGE EXTERNAL;

-- Events that can never be appended, and why: their stream is gone, or the database refuses their content. Nothing
-- removes them but people; what is inserted into eventsql.outbox again is tried again.
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

-- Who relays. Each transaction of the relay locks this row and compares holder and epoch: a lease alone is no fence.
CREATE TABLE eventsql.outbox_relay (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    cluster_id  uuid,                                  -- whose streams the events are for
    producer_id uuid        NOT NULL DEFAULT gen_random_uuid(), -- under which other databases know this outbox
    timeline    text        NOT NULL DEFAULT '',       -- the WAL timeline the numbers belong to
    epoch       bigint      NOT NULL DEFAULT 0,
    holder      uuid,
    expires_at  timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 20);
INSERT INTO eventsql.outbox_relay DEFAULT VALUES;

-- In a shard: the outboxes of other databases that have sent events here. What is remembered of their last batches is
-- never forgotten, however long they are silent.
CREATE TABLE eventsql.outbox_producer (
    producer_id uuid        PRIMARY KEY,
    seen_at     timestamptz NOT NULL DEFAULT now()
);

-- The history this database writes. After a failover it is another one: numbers given out in the lost end of the former
-- one may come again, so they must not mean the same.
CREATE FUNCTION eventsql.wal_timeline() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

-- Takes, keeps or looks at the lease, in a transaction of its own. Returns the epoch of the lease that p_holder has now
-- (NULL: somebody else has it), and whether anything waits. p_epoch is the lease the caller believes to have, 0 for none.
-- Writes only to take a lease and once in a third of its duration to renew it. A caller without the lease may pass a
-- channel: then whoever has it is notified.
CREATE FUNCTION eventsql.relay_poll_v1(p_holder uuid, p_epoch bigint, p_lease interval, p_channel text)
RETURNS TABLE (held_epoch bigint, waiting boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '2s'
AS $$
DECLARE
    relay record;
BEGIN
    SELECT r.epoch, r.holder, r.expires_at, r.timeline INTO STRICT relay FROM eventsql.outbox_relay r;
    IF relay.holder = p_holder AND relay.epoch = p_epoch AND relay.timeline = eventsql.wal_timeline() THEN
        IF relay.expires_at < clock_timestamp() + p_lease * 2 / 3 THEN
            UPDATE eventsql.outbox_relay r SET expires_at = clock_timestamp() + p_lease
            WHERE r.holder = p_holder AND r.epoch = p_epoch
            RETURNING r.epoch INTO held_epoch;
        ELSE
            held_epoch := p_epoch;
        END IF;
    ELSIF relay.holder IS NULL OR relay.holder = p_holder OR relay.expires_at < clock_timestamp() THEN
        UPDATE eventsql.outbox_relay r
        SET epoch = r.epoch + 1,
            holder = p_holder,
            expires_at = clock_timestamp() + p_lease,
            producer_id = CASE WHEN r.timeline = eventsql.wal_timeline() THEN r.producer_id ELSE gen_random_uuid() END,
            timeline = eventsql.wal_timeline()
        WHERE r.epoch = relay.epoch AND r.holder IS NOT DISTINCT FROM relay.holder
          AND (relay.holder IS NULL OR relay.holder = p_holder OR r.expires_at < clock_timestamp())
        RETURNING r.epoch INTO held_epoch;
    ELSIF p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, '');
    END IF;
    waiting := held_epoch IS NOT NULL AND EXISTS (SELECT FROM eventsql.outbox);
    RETURN NEXT;
END $$;

-- The beginning of each transaction of the relay: locks its row until the end of the transaction, or fails with ES010 if
-- the lease belongs to somebody else by now. Returns the outbox's producer id. A client that freezes inside the
-- transaction must not hold the lock for longer than p_patience.
CREATE FUNCTION eventsql.relay_lock_v1(p_holder uuid, p_epoch bigint, p_patience_ms int) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    producer uuid;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the relay needs READ COMMITTED, not %', current_setting('transaction_isolation')
            USING ERRCODE = 'ES003';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', p_patience_ms::text, true),
            set_config('lock_timeout', p_patience_ms::text, true);
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT producer_id INTO producer
    FROM eventsql.outbox_relay
    WHERE holder = p_holder AND epoch = p_epoch AND timeline = eventsql.wal_timeline()
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the relay is not at epoch % of % any more', p_epoch, p_holder USING ERRCODE = 'ES010';
    END IF;
    RETURN producer;
END $$;

-- Takes a page out of the outbox: locks the relay's row, then deletes and returns the visible events with the lowest
-- ids, of all tables of the ring, in the order of their ids: at most p_max_events, and no more after the one that brings
-- their values to p_max_bytes. Never "behind the last id": a lower one may be committed later.
CREATE FUNCTION eventsql.relay_take_v1(
    p_holder uuid, p_epoch bigint, p_patience_ms int, p_max_events int, p_max_bytes bigint)
RETURNS TABLE (
    producer_id uuid, id bigint, stream text, key text, value bytea, headers text, spread int, written_at timestamptz)
LANGUAGE plpgsql
-- Small tables full of dead versions, or large ones never analyzed: only the primary key, in its order, is ever right.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    producer uuid := eventsql.relay_lock_v1(p_holder, p_epoch, p_patience_ms);
BEGIN
    -- A new statement, so a new snapshot: it sees all that was committed before the lock was granted.
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
        RETURNING o.id, o.stream, o.key, o.value, o.headers, o.spread, o.written_at
    )
    SELECT producer, t.id, t.stream, t.key, t.value, t.headers::text, t.spread, t.written_at
    FROM taken t ORDER BY t.id;
END $$;

-- Gives back the space of the transfer table, in a transaction of the relay: empties it and puts back what is in it, with
-- its numbers. Only if that is little; returns whether it was. Fails with 55P03 rather than wait for a reader.
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

-- Makes the outbox of another database known here, and returns the number of the last event that each partition of the
-- given streams has from it. The write makes the commit wait for what was appended before, as an append waits.
CREATE FUNCTION eventsql.transferred_numbers_v1(p_producer uuid, p_stream_ids int[])
RETURNS TABLE (stream_id int, partition int, number bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    INSERT INTO eventsql.outbox_producer AS known (producer_id) VALUES (p_producer)
    ON CONFLICT (producer_id) DO UPDATE SET seen_at = clock_timestamp();
    RETURN QUERY
    SELECT b.stream_id, b.partition, max(b.batch_number)
    FROM eventsql.producer_batch b
    WHERE b.producer_id = p_producer AND b.stream_id = ANY (p_stream_ids)
    GROUP BY b.stream_id, b.partition;
END $$;

-- Appends events that come from the outbox of another database, any number of partitions of this shard, all or none.
--
-- The first six arrays have one element for each partition, sorted by stream and partition; the others one for each
-- event, in the order of the partitions. p_afters is the last number of this producer that the caller believes stored in
-- the partition (NULL: none), p_numbers the number of the last event sent now. A partition takes a batch only directly
-- after the one named, so whatever arrives late, twice or cut differently is stored once and in order.
--
-- Errors: those of append_v1; ES009 another number of this producer is the last stored.
CREATE FUNCTION eventsql.append_transferred_v1(
    p_producer uuid, p_map_version int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[], p_afters bigint[], p_numbers bigint[],
    p_keys text[], p_values bytea[], p_headers text[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    bases       bigint[] := '{}';
    last_number bigint;
    first_event int := 1;
    last_event  int;
BEGIN
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        last_event := first_event + p_counts[i] - 1;
        PERFORM FROM eventsql.stream_partition
        WHERE stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        FOR UPDATE;
        -- A new statement, so a new snapshot: it sees all that was committed before the lock was granted.
        last_number := NULL;
        SELECT batch_number INTO last_number
        FROM eventsql.producer_batch
        WHERE producer_id = p_producer AND stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        ORDER BY batch_number DESC LIMIT 1;
        IF last_number IS DISTINCT FROM p_afters[i] THEN
            RAISE EXCEPTION 'partition % of stream % has % of outbox %, not %',
                p_partitions[i], p_streams[i], last_number, p_producer, p_afters[i] USING ERRCODE = 'ES009';
        END IF;
        bases := bases || eventsql.append_v1(
            p_producer, p_numbers[i], p_map_version,
            p_streams[i:i], p_stream_ids[i:i], p_partitions[i:i], p_counts[i:i],
            array_fill(1, ARRAY[p_counts[i]]), ARRAY(SELECT g FROM generate_series(0, p_counts[i] - 1) AS g),
            p_keys[first_event:last_event], p_values[first_event:last_event], p_headers[first_event:last_event]);
        first_event := last_event + 1;
    END LOOP;
    RETURN bases;
END $$;
