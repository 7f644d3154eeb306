-- EventSQL: the event log of a shard: its identity, its streams, append and fetch.

INSERT INTO eventsql.schema_version (version, description) VALUES (2, 'event log');

-- The identity of this database in its cluster, and the cluster's slot map. The library rejects a database that has the
-- wrong identity or another map.
CREATE TABLE eventsql.shard (
    singleton      boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    cluster_id     uuid        NOT NULL,
    shard_number   int         NOT NULL,
    shard_name     text        NOT NULL,
    shard_names    text[]      NOT NULL,               -- of all shards of the cluster, by number
    database_ids   uuid[]      NOT NULL,               -- of their databases, by number; a restore does not change them
    slot_map       smallint[]  NOT NULL,               -- key slot -> shard number
    map_version    int         NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE eventsql.stream (
    stream_id    int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text        NOT NULL CONSTRAINT stream_name_unique UNIQUE,
    partitions   int         NOT NULL CONSTRAINT stream_partitions_positive CHECK (partitions > 0),
    segment_size bigint      NOT NULL CONSTRAINT stream_segment_size_positive CHECK (segment_size > 0),
    json         boolean     NOT NULL,                 -- values are JSON: the stream has a view with the value as jsonb
    retention    interval,                             -- NULL: unlimited
    compaction   boolean     NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT now()
);

-- One row for each partition. Every append locks it until its commit is visible, but does not update it, so the table
-- gathers no dead row versions, however long an old snapshot stays open.
CREATE TABLE eventsql.stream_partition (
    stream_id   int    NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition   int    NOT NULL,
    log_start   bigint NOT NULL DEFAULT 0,             -- the first offset that still exists
    map_version int    NOT NULL,                       -- publishers with another version of the slot map are rejected
    PRIMARY KEY (stream_id, partition)
) WITH (fillfactor = 50, vacuum_truncate = false);

-- The last batch of each producer in each partition. The newest row of a partition is its head; a producer's own row
-- makes a repeated append harmless. Rows are inserted and deleted but never updated: the newest row is always the last
-- entry of its index range, so finding it stays cheap while dead row versions cannot be removed.
CREATE TABLE eventsql.producer_batch (
    stream_id    int         NOT NULL,
    partition    int         NOT NULL,
    next_offset  bigint      NOT NULL,                 -- the offset after the batch
    base_offset  bigint      NOT NULL,                 -- the offset of its first event
    producer_id  uuid        NOT NULL,
    batch_number bigint      NOT NULL,
    published_at timestamptz NOT NULL,
    CONSTRAINT producer_batch_head PRIMARY KEY (stream_id, partition, next_offset),
    CONSTRAINT producer_batch_of_producer UNIQUE (producer_id, stream_id, partition, batch_number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, vacuum_truncate = false);

-- Where the log of each partition starts, where it ends, and when it was last appended to.
CREATE VIEW eventsql.partition_head AS
SELECT s.name AS stream,
       p.partition,
       p.log_start,
       h.next_offset,
       h.published_at AS last_published_at
FROM eventsql.stream_partition p
JOIN eventsql.stream s USING (stream_id)
CROSS JOIN LATERAL (
    SELECT b.next_offset, b.published_at
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p.stream_id AND b.partition = p.partition
    ORDER BY b.next_offset DESC LIMIT 1) h;

-- Returns the value as jsonb, or NULL if it is not JSON (class 54: nested too deeply, too long). Not PARALLEL SAFE:
-- before PostgreSQL 17 an EXCEPTION block fails in a parallel query.
CREATE FUNCTION eventsql.json_or_null(value bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN convert_from(value, 'UTF8')::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;

-- Raises the error of a caller that knows another incarnation of this database: what it remembers, such as the ids of
-- streams and consumers, may be wrong. Functions compare p_incarnation themselves, which costs less than a call of this
-- one; NULL means that the caller remembers nothing.
CREATE FUNCTION eventsql.reject_incarnation_v1(p_incarnation text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RAISE EXCEPTION 'the incarnation of this database is %, not %',
        coalesce(eventsql.incarnation_v1(), 'not recorded yet'), p_incarnation USING ERRCODE = 'ES011';
END $$;

-- Appends one batch: events of any number of partitions, all or none, in one round trip. Returns the base offset of
-- each partition.
--
-- p_streams, p_stream_ids, p_partitions, p_counts: one element for each partition of the batch, sorted by stream and
-- partition (the lock order).
-- p_groups, p_indexes, p_keys, p_values, p_headers: one element for each event, in the order of the partitions.
-- p_groups is the event's element in p_partitions (from 1), p_indexes its position among the events of the partition
-- (from 0).
-- p_time_limit_ms: the time after which no further partition is locked and no further table written to; 0: no limit. No
-- lock is awaited for longer than that, nor for longer than 5 s. So the function ends within twice the limit, and a client
-- that has timed out leaves nothing behind but a commit that waits for synchronous replicas, or a user's trigger.
--
-- Errors: ES001 the caller has another version of the slot map than the partition; ES002 a later batch of this producer
-- is stored; ES003 the transaction is not READ COMMITTED; ES004 the partition does not exist; ES005 only a part of the
-- batch is stored (impossible as long as the caller resends batches unchanged); ES011 the database has another
-- incarnation than p_incarnation; ES012 a stream id belongs to another stream; ES013 the time limit has passed; 55P03 a lock
-- was not available in time.
CREATE FUNCTION eventsql.append_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_groups int[], p_indexes int[], p_keys text[], p_values bytea[], p_headers text[])
RETURNS bigint[]
LANGUAGE plpgsql
-- The tables are tiny but may be full of dead row versions: only an index is ever right, whatever the statistics say.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s'
AS $$
DECLARE
    ends_at         timestamptz := clock_timestamp() + nullif(p_time_limit_ms, 0) * interval '1 ms';
    partition_count int := cardinality(p_partitions);
    bases           bigint[] := array_fill(0::bigint, ARRAY[partition_count]);
    times           timestamptz[] := array_fill(clock_timestamp(), ARRAY[partition_count]);
    duplicates      int := 0;
    stored_map      int;
    stored_stream   text;
    last            record;
    head            record;
    first_group     int := 1;
    last_group      int;
    first_event     int := 1;
    last_event      int;
    insert_events   text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'append requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF p_time_limit_ms BETWEEN 1 AND 4999 THEN
        PERFORM set_config('lock_timeout', p_time_limit_ms::text, true);
    END IF;
    -- An acknowledged event is never lost: weaker settings are raised for this transaction, stronger ones stay.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;

    FOR i IN 1 .. partition_count LOOP
        IF i > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; locked % of % partitions',
                p_time_limit_ms, i - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        SELECT p.map_version, s.name INTO stored_map, stored_stream
        FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_ids[i] AND p.partition = p_partitions[i]
        FOR UPDATE OF p;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'partition % of stream % does not exist', p_partitions[i], p_streams[i]
                USING ERRCODE = 'ES004';
        ELSIF stored_stream <> p_streams[i] THEN
            RAISE EXCEPTION 'stream % is %, not %', p_stream_ids[i], stored_stream, p_streams[i]
                USING ERRCODE = 'ES012';
        ELSIF stored_map <> p_map_version THEN
            RAISE EXCEPTION 'map version is %, not %', stored_map, p_map_version USING ERRCODE = 'ES001';
        END IF;

        -- New statements have new snapshots: they see everything committed before the lock was granted.
        SELECT ctid AS tid, batch_number, base_offset INTO last
        FROM eventsql.producer_batch
        WHERE producer_id = p_producer AND stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        ORDER BY batch_number DESC LIMIT 1;
        IF last.batch_number = p_number THEN
            bases[i] := last.base_offset;
            duplicates := duplicates + 1;
            CONTINUE;
        ELSIF last.batch_number > p_number THEN
            RAISE EXCEPTION 'batch % is older than the stored batch %', p_number, last.batch_number
                USING ERRCODE = 'ES002';
        END IF;

        SELECT next_offset, greatest(published_at, clock_timestamp()) AS published_at INTO STRICT head
        FROM eventsql.producer_batch
        WHERE stream_id = p_stream_ids[i] AND partition = p_partitions[i]
        ORDER BY next_offset DESC LIMIT 1;
        INSERT INTO eventsql.producer_batch
            (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
        VALUES (p_stream_ids[i], p_partitions[i], head.next_offset + p_counts[i], head.next_offset,
                p_producer, p_number, head.published_at);
        IF last.batch_number IS NOT NULL THEN
            -- By ctid: the planner could choose any index, and one of them leads through all dead rows of the
            -- partition. Another process deletes the row only when it is a day old; its ctid may then belong to another
            -- row.
            DELETE FROM eventsql.producer_batch
            WHERE ctid = last.tid AND producer_id = p_producer AND batch_number = last.batch_number
              AND stream_id = p_stream_ids[i] AND partition = p_partitions[i];
        END IF;
        bases[i] := head.next_offset;
        times[i] := head.published_at;
    END LOOP;

    IF duplicates = partition_count THEN
        RETURN bases;
    ELSIF duplicates > 0 THEN
        RAISE EXCEPTION 'batch % is stored in % of % partitions', p_number, duplicates, partition_count
            USING ERRCODE = 'ES005';
    END IF;

    -- One INSERT for each stream of the batch; planned each time, which costs less than it saves.
    WHILE first_group <= partition_count LOOP
        IF partition_count > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; wrote to % of % partitions',
                p_time_limit_ms, first_group - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        last_group := first_group;
        last_event := first_event - 1 + p_counts[first_group];
        WHILE last_group < partition_count AND p_stream_ids[last_group + 1] = p_stream_ids[first_group] LOOP
            last_group := last_group + 1;
            last_event := last_event + p_counts[last_group];
        END LOOP;
        insert_events := format(
            'INSERT INTO eventsql.%I (partition, event_offset, key, value, headers, published_at)'
            ' SELECT ($1)[g], ($2)[g] + x, k, v, h::json, ($3)[g]'
            ' FROM (SELECT unnest($4) AS g, unnest($5) AS x, unnest($6) AS k, unnest($7) AS v, unnest($8) AS h) AS e',
            'events_' || p_streams[first_group]);
        IF first_group = 1 AND last_group = partition_count THEN
            EXECUTE insert_events
            USING p_partitions, bases, times, p_groups, p_indexes, p_keys, p_values, p_headers;
        ELSE
            EXECUTE insert_events
            USING p_partitions, bases, times,
                  p_groups[first_event:last_event], p_indexes[first_event:last_event], p_keys[first_event:last_event],
                  p_values[first_event:last_event], p_headers[first_event:last_event];
        END IF;
        first_group := last_group + 1;
        first_event := last_event + 1;
    END LOOP;
    RETURN bases;
END $$;

-- Reads a page of each of several partitions of one stream in one round trip.
--
-- p_partitions, p_offsets, p_max_bytes: one element for each page: the partition, its first offset, and its size. A page
-- has at most p_max_events events and ends with the event that brings its values, keys and headers to p_max_bytes
-- bytes, or at the end of its segment. It is empty if the head does not exceed its first offset. Rows are returned page
-- by page, in the order of the offsets.
--
-- Where the head says that there are events but the segment has none from the first offset on, or does not exist, the
-- page is one row without a value: its event_offset is the end of the range that was read. The log may start above it,
-- or the events are missing.
--
-- The head is read first, by a cached plan: fetching from a partition without new events costs almost nothing. Each
-- segment is named, so the cost does not depend on the number of segments, and its query is planned when it is read: a
-- plan made while a segment was small would be kept when it is large. The settings leave only a scan of the primary key
-- in its order, also on tables that were never analyzed. Bytes are counted row by row only for a page that may be too
-- large, because counting costs time: rows are stored uncompressed, and one of more than 2,000 bytes makes the TOAST
-- table grow.
--
-- Errors: ES011 the database has another incarnation than p_incarnation; ES012 p_stream_id belongs to another stream.
CREATE FUNCTION eventsql.fetch_v1(
    p_incarnation text, p_stream_id int, p_stream text, p_segment_size bigint, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (page int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz)
LANGUAGE plpgsql STABLE -- one snapshot: a large value that is not counted is not seen either
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET work_mem = '64MB'
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s' -- for a segment's table that is locked exclusively
AS $$
DECLARE
    stored_stream text;
    head          bigint;
    segment       text;
    largest_bytes bigint;
    events        text;
    event_bytes   text := '(octet_length(value) + coalesce(octet_length(key), 0)'
                          ' + coalesce(octet_length(headers::text), 0))';
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT s.name INTO stored_stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF stored_stream <> p_stream THEN
        RAISE EXCEPTION 'stream % is %, not %', p_stream_id, stored_stream, p_stream USING ERRCODE = 'ES012';
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        SELECT b.next_offset INTO head
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_id AND b.partition = p_partitions[i]
        ORDER BY b.next_offset DESC LIMIT 1;
        IF head <= p_offsets[i] THEN
            CONTINUE;
        END IF;

        segment := format('eventsql.%I',
            'events_' || p_stream || '__p' || p_partitions[i] || '_s' || p_offsets[i] / p_segment_size);
        SELECT CASE WHEN pg_relation_size(c.reltoastrelid) = 0 THEN 2000 * least(p_max_events, head - p_offsets[i]) END
        INTO largest_bytes
        FROM pg_class c WHERE c.oid = to_regclass(segment);
        IF FOUND THEN
            events := format(
                'SELECT %s AS page, event_offset, key, value, headers, published_at FROM %s'
                ' WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2', i - 1, segment);
            IF largest_bytes IS NULL OR largest_bytes > p_max_bytes[i] THEN
                EXECUTE format('SELECT sum(%s) FROM (%s) AS events', event_bytes, events)
                INTO largest_bytes USING p_offsets[i], p_max_events;
            END IF;
            IF largest_bytes > p_max_bytes[i] THEN
                events := format(
                    'SELECT page, event_offset, key, value, headers, published_at FROM ('
                    '  SELECT *, sum(%1$s) OVER (ORDER BY event_offset ROWS UNBOUNDED PRECEDING) - %1$s AS bytes_before'
                    '  FROM (%2$s) AS events'
                    ') AS counted WHERE bytes_before < $3', event_bytes, events);
            END IF;
            RETURN QUERY EXECUTE events USING p_offsets[i], p_max_events, p_max_bytes[i];
        END IF;
        IF NOT FOUND THEN -- neither the segment nor, in it, an event
            page := i - 1;
            event_offset := least(head, (p_offsets[i] / p_segment_size + 1) * p_segment_size);
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- Returns the log start and the head of all partitions of some streams, by stream and partition. The cost does not
-- depend on the size of the streams: the head is the last entry of its index range.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.heads_v1(p_incarnation text, p_stream_ids int[])
RETURNS TABLE (stream_id int, partition int, log_start bigint, next_offset bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS $$
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    RETURN QUERY
    SELECT p.stream_id, p.partition, p.log_start, h.next_offset
    FROM eventsql.stream_partition p
    CROSS JOIN LATERAL (
        SELECT b.next_offset
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    WHERE p.stream_id = ANY (p_stream_ids)
    ORDER BY p.stream_id, p.partition;
END $$;
