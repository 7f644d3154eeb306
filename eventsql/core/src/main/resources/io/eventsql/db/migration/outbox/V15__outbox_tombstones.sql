-- EventSQL: events without a value (tombstones) in an outbox.

INSERT INTO eventsql.schema_version (version, description) VALUES (15, 'outbox tombstones');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- An event without a value says that its key is deleted, so it has one. The check reads the ring, which is nearly empty.
ALTER TABLE eventsql.outbox
    ALTER COLUMN value DROP NOT NULL,
    ADD CONSTRAINT outbox_tombstone_key CHECK (value IS NOT NULL OR key IS NOT NULL);
ALTER TABLE eventsql.outbox_transfer ALTER COLUMN value DROP NOT NULL;
ALTER TABLE eventsql.outbox_refused ALTER COLUMN value DROP NOT NULL;

-- As in version 1, but an event without a value counts no bytes.
CREATE OR REPLACE FUNCTION eventsql.relay_take_v1(
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
                       sum(coalesce(octet_length(e.value), 0)) OVER (ORDER BY e.id ROWS UNBOUNDED PRECEDING)
                           - coalesce(octet_length(e.value), 0) AS bytes_before
                FROM (SELECT w.id, w.value FROM eventsql.outbox w ORDER BY w.id LIMIT p_max_events) e
            ) page
            WHERE page.bytes_before < p_max_bytes)
        RETURNING o.id, o.stream, o.key, o.value, o.headers, o.routing_hash, o.written_at
    )
    SELECT producer, t.id, t.stream, t.key, t.value, t.headers::text, t.routing_hash, t.written_at
    FROM taken t
    ORDER BY t.id;
END $$;
