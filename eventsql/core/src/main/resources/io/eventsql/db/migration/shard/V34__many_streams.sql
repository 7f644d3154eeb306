-- EventSQL: batches and fetches of many streams (decision 50). Each stream has its own tables, so what names them is dynamic SQL,
-- which is parsed and planned with every call. What remains of a batch takes four statements for all of its partitions together, and
-- what is dynamic is as short as it can be.

INSERT INTO eventsql.schema_version (version, description) VALUES (34, 'many streams');

-- Checks an append to partitions of several streams, locks the partitions in their order, and records the batch: as
-- begin_append_partitions_v1 does for one stream. Returns an element for each partition. To be called by functions with the settings of append_v1, which hold in it.
--
-- Indexes: the primary key of stream_partition, producer_batch_of_producer, producer_batch_head. Locks the partitions' rows of
-- stream_partition until the commit is visible.
--
-- Errors: those of append_v1.
CREATE FUNCTION eventsql.begin_append_streams_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    OUT is_new boolean, OUT first_offsets bigint[], OUT published timestamptz[], OUT tables text[], OUT storages text[])
LANGUAGE plpgsql
AS $$
DECLARE
    ends_at         timestamptz := clock_timestamp() + nullif(p_time_limit_ms, 0) * interval '1 ms';
    partition_count int := cardinality(p_partitions);
    as_expected     int;
    maps            int[];
    names           text[];
    duplicates      int;
    last_tids       tid[];
    last_number     bigint;
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

    -- The partitions are locked in their order, and none after the time limit.
    SELECT count(*) FILTER (WHERE e.name = e.expected_name AND (e.map_version <> p_map_version) IS NOT TRUE),
           array_agg(e.map_version), array_agg(e.name), array_agg(e.table_name), array_agg(e.storage)
    INTO as_expected, maps, names, tables, storages
    FROM (
        SELECT u.stream AS expected_name, locked.*
        FROM unnest(p_streams, p_stream_ids, p_partitions) WITH ORDINALITY AS u (stream, stream_id, partition, n)
        LEFT JOIN LATERAL (
            SELECT p.map_version, s.name, s.table_name, s.storage
            FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
            WHERE p.stream_id = u.stream_id AND p.partition = u.partition
              AND (u.n = 1 OR (clock_timestamp() > ends_at) IS NOT TRUE)
            FOR UPDATE OF p) locked ON true
        ORDER BY u.n) e;
    FOR i IN 1 .. CASE WHEN as_expected < partition_count THEN partition_count ELSE 0 END LOOP
        IF names[i] IS NULL AND i > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; locked % of % partitions',
                p_time_limit_ms, i - 1, partition_count USING ERRCODE = 'ES013';
        ELSIF names[i] IS NULL THEN
            RAISE EXCEPTION 'partition % of stream % does not exist', p_partitions[i], p_streams[i]
                USING ERRCODE = 'ES004';
        ELSIF names[i] <> p_streams[i] THEN
            RAISE EXCEPTION 'stream % is %, not %', p_stream_ids[i], names[i], p_streams[i] USING ERRCODE = 'ES012';
        ELSIF maps[i] <> p_map_version
            AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_ids[i], p_partitions[i])
        THEN
            RAISE EXCEPTION 'map version is %, not %', maps[i], p_map_version USING ERRCODE = 'ES001';
        END IF;
    END LOOP;

    -- A new statement has a new snapshot: it sees everything committed before the locks were granted.
    SELECT count(*) FILTER (WHERE e.batch_number = p_number), max(e.batch_number), array_agg(e.tid),
           array_agg(CASE WHEN e.batch_number = p_number THEN e.base_offset ELSE e.next_offset END),
           array_agg(greatest(e.published_at, clock_timestamp()))
    INTO duplicates, last_number, last_tids, first_offsets, published
    FROM (
        SELECT last.tid, last.batch_number, last.base_offset, head.next_offset, head.published_at
        FROM unnest(p_stream_ids, p_partitions) WITH ORDINALITY AS u (stream_id, partition, n)
        CROSS JOIN LATERAL (
            SELECT h.next_offset, h.published_at FROM eventsql.producer_batch h
            WHERE h.stream_id = u.stream_id AND h.partition = u.partition
            ORDER BY h.next_offset DESC LIMIT 1) head
        LEFT JOIN LATERAL (
            SELECT b.ctid AS tid, b.batch_number, b.base_offset FROM eventsql.producer_batch b
            WHERE b.producer_id = p_producer AND b.stream_id = u.stream_id AND b.partition = u.partition
            ORDER BY b.batch_number DESC LIMIT 1) last ON true
        ORDER BY u.n) e;
    IF last_number > p_number THEN
        RAISE EXCEPTION 'batch % is older than the stored batch %', p_number, last_number USING ERRCODE = 'ES002';
    END IF;
    is_new := duplicates = 0;
    IF duplicates = partition_count THEN
        RETURN;
    ELSIF duplicates > 0 THEN
        RAISE EXCEPTION 'batch % is stored in % of % partitions', p_number, duplicates, partition_count
            USING ERRCODE = 'ES005';
    ELSIF partition_count > 1 AND clock_timestamp() > ends_at THEN
        RAISE EXCEPTION 'the time limit of % ms has passed; wrote to 0 of % partitions', p_time_limit_ms, partition_count
            USING ERRCODE = 'ES013';
    END IF;

    INSERT INTO eventsql.producer_batch
        (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
    SELECT e.stream_id, e.partition, e.base + e.count, e.base, p_producer, p_number, e.published
    FROM (
        SELECT unnest(p_stream_ids) AS stream_id, unnest(p_partitions) AS partition, unnest(first_offsets) AS base,
               unnest(p_counts) AS count, unnest(begin_append_streams_v1.published) AS published) e;
    IF last_number IS NOT NULL THEN
        -- By ctid, as in begin_append_partitions_v1.
        DELETE FROM eventsql.producer_batch b
        USING (SELECT unnest(last_tids) AS tid, unnest(p_stream_ids) AS stream_id, unnest(p_partitions) AS partition) l
        WHERE b.ctid = l.tid AND b.producer_id IS NOT DISTINCT FROM p_producer
          AND b.stream_id IS NOT DISTINCT FROM l.stream_id AND b.partition IS NOT DISTINCT FROM l.partition
          AND b.batch_number <> p_number;
    END IF;
END $$;

-- As in version 19, but the partitions are locked and recorded together, and a stream with one event has the shortest INSERT.
CREATE OR REPLACE FUNCTION eventsql.append_v1(
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
    is_new          boolean;
    bases           bigint[];
    times           timestamptz[];
    tables          text[];
    storages        text[];
    first_group     int := 1;
    last_group      int;
    first_event     int := 1;
    last_event      int;
BEGIN
    SELECT b.is_new, b.first_offsets, b.published, b.tables, b.storages INTO is_new, bases, times, tables, storages
    FROM eventsql.begin_append_streams_v1(
        p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms, p_streams, p_stream_ids, p_partitions,
        p_counts) b;
    IF NOT is_new THEN
        RETURN bases;
    END IF;

    -- One INSERT for each stream of the batch.
    WHILE first_group <= partition_count LOOP
        IF partition_count > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; wrote to % of % partitions',
                p_time_limit_ms, first_group - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        last_group := first_group;
        last_event := first_event - 1 + p_counts[first_group];
        IF storages[first_group] = 'blocks' THEN
            PERFORM eventsql.insert_as_blocks_v1(
                p_stream_ids[first_group], tables[first_group], p_partitions[first_group], bases[first_group],
                times[first_group], p_keys[first_event:last_event], p_values[first_event:last_event],
                p_headers[first_event:last_event]);
            first_group := first_group + 1;
            first_event := last_event + 1;
            CONTINUE;
        END IF;
        WHILE last_group < partition_count AND p_stream_ids[last_group + 1] = p_stream_ids[first_group] LOOP
            last_group := last_group + 1;
            last_event := last_event + p_counts[last_group];
        END LOOP;
        IF first_event = last_event THEN
            EXECUTE format(
                'INSERT INTO eventsql.%I (partition, event_offset, key, value, headers, published_at)'
                ' VALUES ($1, $2, $3, $4, $5::json, $6)', tables[first_group])
            USING p_partitions[first_group], bases[first_group], p_keys[first_event], p_values[first_event],
                  p_headers[first_event], times[first_group];
        ELSE
            EXECUTE format(
                'INSERT INTO eventsql.%I (partition, event_offset, key, value, headers, published_at)'
                ' SELECT ($1)[g], ($2)[g] + x, k, v, h::json, ($3)[g]'
                ' FROM (SELECT unnest($4) AS g, unnest($5) AS x, unnest($6) AS k, unnest($7) AS v, unnest($8) AS h) AS e',
                tables[first_group])
            USING p_partitions, bases, times,
                  p_groups[first_event:last_event], p_indexes[first_event:last_event], p_keys[first_event:last_event],
                  p_values[first_event:last_event], p_headers[first_event:last_event];
        END IF;
        first_group := last_group + 1;
        first_event := last_event + 1;
    END LOOP;
    RETURN bases;
END $$;

-- As in version 23, but it reads the ordinary page itself: one that is within its segment and has one event, or small ones alone.
--
-- Indexes: producer_batch_head and the primary keys of stream and segment, then the segment's own; otherwise those of fetch_v2.
-- Takes no row lock.
--
-- Errors: those of fetch_v2. An error of one page is that of the statement.
CREATE OR REPLACE FUNCTION eventsql.fetch_streams_v1(
    p_incarnation text, p_stream_ids int[], p_streams text[], p_partitions int[], p_offsets bigint[],
    p_max_events int[], p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz)
LANGUAGE plpgsql STABLE -- as fetch_v2
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET work_mem = '64MB'
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS $$
DECLARE
    small_event_bytes CONSTANT bigint := 2000; -- as in fetch_v2
    request record;
    rows    int;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR request IN
        SELECT r.number::int - 1 AS page, r.stream_id, r.stream, r.partition, r.from_offset, r.max_events, r.max_bytes,
               head.next_offset AS head, least(r.max_events, head.next_offset - r.from_offset) AS events, segment.table_name,
               -- NULL: not an ordinary page, or one whose table is being replaced or dropped
               CASE WHEN s.name = r.stream AND s.storage = 'rows' AND segment.end_offset >= head.next_offset
                   THEN to_regclass('eventsql.' || quote_ident(segment.table_name)) END AS relation
        FROM unnest(p_stream_ids, p_streams, p_partitions, p_offsets, p_max_events, p_max_bytes)
            WITH ORDINALITY AS r (stream_id, stream, partition, from_offset, max_events, max_bytes, number)
        LEFT JOIN eventsql.stream s ON s.stream_id = r.stream_id
        LEFT JOIN LATERAL ( -- a head beyond it; a scan from it on passes the entries of dead rows by
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = r.stream_id AND b.partition = r.partition AND b.next_offset > r.from_offset
            ORDER BY b.next_offset DESC LIMIT 1) head ON true
        LEFT JOIN LATERAL (
            SELECT g.table_name, g.end_offset FROM eventsql.segment g
            WHERE g.stream_id = r.stream_id AND g.partition = r.partition AND g.first_offset <= r.from_offset
              AND head.next_offset IS NOT NULL
            ORDER BY g.first_offset DESC LIMIT 1) segment ON true
        WHERE head.next_offset IS NOT NULL OR r.stream <> s.name -- which fetch_v2 rejects
    LOOP
        IF request.relation IS NOT NULL AND (
            request.events = 1 -- of any size: a page has at least one
            OR small_event_bytes * request.events <= request.max_bytes AND pg_relation_size((
                SELECT c.reltoastrelid FROM pg_class c WHERE c.oid = request.relation)) = 0)
        THEN
            RETURN QUERY EXECUTE format(
                'SELECT CASE WHEN erased_at IS NULL THEN %1$s ELSE -1 - %1$s END, event_offset, key, value, headers,'
                ' published_at FROM eventsql.%2$I WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2',
                request.page, request.table_name)
            USING request.from_offset, request.events;
            GET DIAGNOSTICS rows = ROW_COUNT;
            IF rows < request.max_events THEN
                page := request.page;
                event_offset := request.head;
                key := NULL; value := NULL; headers := NULL; published_at := NULL;
                RETURN NEXT;
            END IF;
        ELSE
            RETURN QUERY
            SELECT CASE WHEN f.page < 0 THEN -1 - request.page ELSE request.page END,
                   f.event_offset, f.key, f.value, f.headers, f.published_at
            FROM eventsql.fetch_v2(
                p_incarnation, request.stream_id, request.stream, ARRAY[request.partition], ARRAY[request.from_offset],
                request.max_events, ARRAY[request.max_bytes]) f;
        END IF;
    END LOOP;
END $$;

-- CREATE OR REPLACE keeps the privileges of append_v1, but not the rights that it runs with: where roles.sql was applied, which
-- revokes it from PUBLIC, those of the owner.
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        ALTER FUNCTION eventsql.append_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    END IF;
END $$;
