-- EventSQL: what a shard needs to receive events from the outboxes of other databases.

INSERT INTO eventsql.schema_version (version, description) VALUES (3, 'transferred events');

-- The producers of the outboxes of other databases that have sent events to this shard. Their last batches are kept,
-- because an outbox may send again after any time. An outbox gets another producer whenever its database has another
-- incarnation, and sends what is left of the former ones first. So a producer has ended when a later one of its outbox is
-- registered; delete_dead_producers_v1 deletes it 30 days after that.
CREATE TABLE eventsql.outbox_producer (
    producer_id uuid        PRIMARY KEY,
    outbox_id   uuid        NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz                            -- NULL: the outbox may have events of this producer
);

-- Registers a producer of another database's outbox, and returns the number of the last event that each partition of the
-- given streams has from it. Its outbox has no events of its other producers left. The write makes the commit wait for
-- everything appended before, as an append waits. Scans outbox_producer, which has few rows; locks those of the outbox.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.register_outbox_v1(
    p_incarnation text, p_outbox uuid, p_producer uuid, p_stream_ids int[])
RETURNS TABLE (stream_id int, partition int, number bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '2s'
AS $$
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE eventsql.outbox_producer o
    SET ended_at = clock_timestamp()
    WHERE o.outbox_id = p_outbox AND o.producer_id <> p_producer AND o.ended_at IS NULL;
    INSERT INTO eventsql.outbox_producer AS known (producer_id, outbox_id) VALUES (p_producer, p_outbox)
    ON CONFLICT (producer_id) DO UPDATE SET seen_at = clock_timestamp(), ended_at = NULL;
    RETURN QUERY
    SELECT b.stream_id, b.partition, max(b.batch_number)
    FROM eventsql.producer_batch b
    WHERE b.producer_id = p_producer AND b.stream_id = ANY (p_stream_ids)
    GROUP BY b.stream_id, b.partition;
END $$;

-- Appends events from the outbox of another database to any number of partitions of this shard, all or none. Returns
-- the base offset of each partition.
--
-- p_streams to p_numbers: one element for each partition, sorted by stream and partition. p_previous_numbers is the
-- last number of this producer that the caller believes stored in the partition (NULL: none), p_numbers the number of
-- the last event sent now. A partition accepts a batch only directly after the previous number given, so that events
-- that arrive late, twice or in other pages are stored once and in order.
-- p_keys, p_values, p_headers: one element for each event, in the order of the partitions.
-- p_time_limit_ms: as in append_v1.
--
-- Errors: those of append_v1; ES009 the last stored number of this producer is not the previous number given.
CREATE FUNCTION eventsql.append_transferred_v1(
    p_producer uuid, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_previous_numbers bigint[], p_numbers bigint[],
    p_keys text[], p_values bytea[], p_headers text[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s'
AS $$
DECLARE
    ends_at     timestamptz := clock_timestamp() + nullif(p_time_limit_ms, 0) * interval '1 ms';
    bases       bigint[] := '{}';
    last_number bigint;
    first_event int := 1;
    last_event  int;
BEGIN
    IF p_time_limit_ms BETWEEN 1 AND 4999 THEN
        PERFORM set_config('lock_timeout', p_time_limit_ms::text, true);
    END IF;
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN -- before a last number is compared
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        IF i > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; wrote to % of % partitions',
                p_time_limit_ms, i - 1, cardinality(p_partitions) USING ERRCODE = 'ES013';
        END IF;
        last_event := first_event + p_counts[i] - 1;
        PERFORM FROM eventsql.stream_partition
        WHERE stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        FOR UPDATE;

        -- A new statement has a new snapshot: it sees everything committed before the lock was granted.
        last_number := NULL;
        SELECT batch_number INTO last_number
        FROM eventsql.producer_batch
        WHERE producer_id = p_producer AND stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        ORDER BY batch_number DESC LIMIT 1;
        IF last_number IS DISTINCT FROM p_previous_numbers[i] THEN
            RAISE EXCEPTION 'the last number of outbox % in partition % of stream % is %, not %',
                p_producer, p_partitions[i], p_streams[i], last_number, p_previous_numbers[i] USING ERRCODE = 'ES009';
        END IF;

        bases := bases || eventsql.append_v1(
            p_producer, p_numbers[i], p_map_version, p_incarnation, p_time_limit_ms,
            p_streams[i:i], p_stream_ids[i:i], p_partitions[i:i], p_counts[i:i],
            array_fill(1, ARRAY[p_counts[i]]), ARRAY(SELECT g FROM generate_series(0, p_counts[i] - 1) AS g),
            p_keys[first_event:last_event], p_values[first_event:last_event], p_headers[first_event:last_event]);
        first_event := last_event + 1;
    END LOOP;
    RETURN bases;
END $$;
