-- EventSQL: an outbox that keeps events for an unavailable shard relays those for other shards as fast as before, also once keys have
-- moved between shards. And two erasures of one key leave each other in place.

INSERT INTO eventsql.schema_version (version, description) VALUES (40, 'outbox repairs');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- The events of a key that are on their way to a shard. The shard is the seed of the hash, and no column of its own: so no statement
-- is planned with the primary key that is meant to use this index, whatever the statistics say.
CREATE INDEX outbox_transfer_key_hash ON eventsql.outbox_transfer (hashtextextended(key, shard)) WHERE key IS NOT NULL;

-- Returns to which shards events of these keys are on their way, in a transaction of the relay. p_streams, p_keys: one element for
-- each key of a stream. Runs with the rights of the caller, who reads outbox_transfer.
--
-- Indexes: the primary key, one probe for each shard that has events; then outbox_transfer_key_hash, one probe for each key and such
-- shard, which ends at the first event. Takes no row lock.
CREATE FUNCTION eventsql.transfer_shards_v1(p_streams text[], p_keys text[])
RETURNS TABLE (stream text, key text, shard int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE addressed (number) AS (
        (SELECT t.shard FROM eventsql.outbox_transfer t ORDER BY t.shard LIMIT 1)
        UNION ALL
        SELECT (SELECT t.shard FROM eventsql.outbox_transfer t WHERE t.shard > a.number ORDER BY t.shard LIMIT 1)
        FROM addressed a WHERE a.number IS NOT NULL
    )
    SELECT k.stream, k.key, a.number
    FROM addressed a CROSS JOIN unnest(p_streams, p_keys) AS k (stream, key)
    WHERE a.number IS NOT NULL AND EXISTS (
        SELECT FROM eventsql.outbox_transfer t
        WHERE hashtextextended(t.key, t.shard) = hashtextextended(k.key, a.number) AND t.key IS NOT NULL
          AND t.key = k.key AND t.stream = k.stream AND t.shard + 0 = a.number
        OFFSET 0); -- which keeps it a probe for each key
END $$;

-- As in version 14, but an erasure deletes no other one of its key that has not ended: that may erase headers which this one leaves.
-- Each ends by itself.
CREATE OR REPLACE FUNCTION eventsql.begin_outbox_erasure_v1(p_erasure uuid, p_stream text, p_key text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    LOCK TABLE eventsql.outbox_refused IN SHARE ROW EXCLUSIVE MODE;
    -- Also those that were abandoned, or replaced on the shards: a call that resumes one records it anew.
    DELETE FROM eventsql.outbox_erasure e
    WHERE e.started_at < now() - interval '30 days' AND e.erasure_id <> p_erasure;
    INSERT INTO eventsql.outbox_erasure (erasure_id, stream, key) VALUES (p_erasure, p_stream, p_key)
    ON CONFLICT DO NOTHING;
END $$;
