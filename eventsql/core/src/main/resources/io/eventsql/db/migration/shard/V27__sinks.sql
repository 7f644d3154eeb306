-- EventSQL: sinks of engines that commit in two phases, such as Apache Flink.
--
-- Such an engine first stores a batch in its checkpoint, with a producer and a number, and appends it when the checkpoint is
-- complete: once or again, after any failure and after any time. So what is stored of a sink must not be forgotten.

INSERT INTO eventsql.schema_version (version, description) VALUES (27, 'sinks');

SET LOCAL lock_timeout = '3s';

-- The producers of sinks: one for each start of each writer that has stored something. Their last batches are kept until
-- delete_sink_v1 deletes the sink.
CREATE TABLE eventsql.sink_producer (
    producer_id uuid        PRIMARY KEY,
    sink        text        NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT now()
);

-- Appends one batch of a sink to one partition, unless it is stored already. Returns whether it was stored by this call.
--
-- A partition accepts the batches of a producer in the order of their numbers, from 1, without gaps. So a number that is not
-- above the last one is known to be stored.
--
-- p_sink: registered with the producer; NULL: the producer is none of a sink, its numbers may have gaps, and its last batch is
-- forgotten like that of any publisher.
-- p_keys, p_values, p_headers: one element for each event, in their order.
-- p_time_limit_ms: as in append_v1.
--
-- Indexes: the primary key of stream_partition, producer_batch_of_producer and the primary key of sink_producer; those of
-- append_v1. Locks the partition's row of stream_partition until the commit is visible; that makes the commit wait for everything
-- appended before, also if the batch is stored already.
--
-- Errors: those of append_v1; ES026 the batch before is not stored.
CREATE FUNCTION eventsql.append_sink_v1(
    p_sink text, p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_stream text, p_stream_id int, p_partition int, p_keys text[], p_values bytea[], p_headers text[])
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s'
AS $$
DECLARE
    stored_map  int;
    last_number bigint;
    event_count int := cardinality(p_values);
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'append requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF p_time_limit_ms BETWEEN 1 AND 4999 THEN
        PERFORM set_config('lock_timeout', p_time_limit_ms::text, true);
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN -- before a last number is compared
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT p.map_version INTO stored_map
    FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition
    FOR UPDATE;

    -- A new statement has a new snapshot: it sees everything committed before the lock was granted.
    SELECT b.batch_number INTO last_number
    FROM eventsql.producer_batch b
    WHERE b.producer_id = p_producer AND b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.batch_number DESC LIMIT 1;
    IF last_number >= p_number THEN
        RETURN false;
    ELSIF stored_map <> p_map_version THEN -- before the gap that the batches before leave
        RAISE EXCEPTION 'map version is %, not %', stored_map, p_map_version USING ERRCODE = 'ES001';
    ELSIF p_sink IS NOT NULL THEN
        IF p_number <> coalesce(last_number, 0) + 1 THEN
            RAISE EXCEPTION 'batch % of sink % does not follow batch %, the last one of its producer in partition % of stream %',
                p_number, p_sink, coalesce(last_number, 0), p_partition, p_stream USING ERRCODE = 'ES026';
        ELSIF last_number IS NULL THEN
            INSERT INTO eventsql.sink_producer (producer_id, sink) VALUES (p_producer, p_sink)
            ON CONFLICT (producer_id) DO NOTHING;
        END IF;
    END IF;
    PERFORM eventsql.append_v1(
        p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
        ARRAY[p_stream], ARRAY[p_stream_id], ARRAY[p_partition], ARRAY[event_count],
        array_fill(1, ARRAY[event_count]), ARRAY(SELECT g FROM generate_series(0, event_count - 1) AS g),
        p_keys, p_values, p_headers);
    RETURN true;
END $$;

-- Deletes a sink: what is stored of its producers is forgotten a day after their last batch. Returns how many producers it
-- had. To be called when no job will write with it again, from no checkpoint and no savepoint: a batch of the sink that is
-- committed again later would be stored twice, or be rejected. Scans sink_producer; locks its rows of the sink.
CREATE FUNCTION eventsql.delete_sink_v1(p_sink text) RETURNS bigint
LANGUAGE plpgsql
SET lock_timeout = '2s'
AS $$
DECLARE
    deleted bigint;
BEGIN
    DELETE FROM eventsql.sink_producer s WHERE s.sink = p_sink;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

-- As in version 7, but also keeps the rows of sinks, which may resend after any time.
CREATE OR REPLACE FUNCTION eventsql.delete_dead_producers_v1(p_own uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    deleted bigint;
BEGIN
    DELETE FROM eventsql.outbox_producer o WHERE o.ended_at < clock_timestamp() - interval '30 days';
    DELETE FROM eventsql.producer_batch b
    WHERE b.published_at < clock_timestamp() - interval '1 day' AND b.producer_id <> p_own
      AND NOT EXISTS (SELECT FROM eventsql.outbox_producer o WHERE o.producer_id = b.producer_id)
      AND NOT EXISTS (SELECT FROM eventsql.sink_producer s WHERE s.producer_id = b.producer_id)
      AND EXISTS (
          SELECT FROM eventsql.producer_batch later
          WHERE later.stream_id = b.stream_id AND later.partition = b.partition
            AND later.next_offset > b.next_offset);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

REVOKE ALL ON FUNCTION eventsql.append_sink_v1, eventsql.delete_sink_v1 FROM PUBLIC;
