-- EventSQL: storage in blocks. A stream may keep the events of a batch and partition in few rows of up to 8 kB, so that row
-- header, index entry and WAL record are paid once for some thirty events (decision 23).
--
-- The tables of such a stream are made, ended, truncated and dropped as those of the others: partitions and segments have the
-- same names. Only the topmost table is named <table>__blocks, because <table> is a view with a row for each event. In the
-- tables, event_offset is the offset of a block's last event, so the first block at or above an offset contains it: what looks
-- for the next event by its offset works for both storages.
--
-- A block never crosses the end of a segment.

INSERT INTO eventsql.schema_version (version, description) VALUES (19, 'blocks');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

ALTER TABLE eventsql.stream
    ADD COLUMN storage text NOT NULL DEFAULT 'rows' CONSTRAINT stream_storage_known CHECK (storage IN ('rows', 'blocks'));

-- The format of a block of n events: 1 + 3 n numbers of four bytes, most significant first, then the keys, values and headers,
-- all text in UTF-8, without gaps: key, value and headers of the first event, then those of the second, and so on. The first
-- number is 1, each other one the position after a field, counted from 1 in that data. It is negative if the field is NULL.

-- Returns the number at an index, from 0, of a block.
CREATE FUNCTION eventsql.block_number_v1(p_block bytea, p_index int) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (get_byte(p_block, 4 * p_index) << 24) | (get_byte(p_block, 4 * p_index + 1) << 16)
    | (get_byte(p_block, 4 * p_index + 2) << 8) | get_byte(p_block, 4 * p_index + 3);

-- Returns a field of a block: 3 * n - 2 is the key of its n-th event, 3 * n - 1 the value, 3 * n the headers.
CREATE FUNCTION eventsql.block_field_v1(p_block bytea, p_events int, p_field int) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN eventsql.block_number_v1(p_block, p_field) > 0 THEN substring(
    p_block
    FROM 12 * p_events + 4 + abs(eventsql.block_number_v1(p_block, p_field - 1))
    FOR eventsql.block_number_v1(p_block, p_field) - abs(eventsql.block_number_v1(p_block, p_field - 1))) END;

-- Returns the events of a block, numbered from 1. A query that uses it is planned as if it had this body, so fields that it
-- does not use are not decoded.
CREATE FUNCTION eventsql.block_events_v1(p_block bytea, p_events int)
RETURNS TABLE (n int, key text, value bytea, headers text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 30
AS $$
    SELECT i,
           convert_from(eventsql.block_field_v1(p_block, p_events, 3 * i - 2), 'UTF8'),
           eventsql.block_field_v1(p_block, p_events, 3 * i - 1),
           convert_from(eventsql.block_field_v1(p_block, p_events, 3 * i), 'UTF8')
    FROM generate_series(1, p_events) AS i
$$;

-- Returns a block of events. The arrays have one element for each event.
CREATE FUNCTION eventsql.pack_block_v1(p_keys text[], p_values bytea[], p_headers text[]) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT int4send(1)
        || string_agg(
            int4send(CASE WHEN e.key IS NULL THEN -e.key_end ELSE e.key_end END)
            || int4send(CASE WHEN e.value IS NULL THEN -e.value_end ELSE e.value_end END)
            || int4send(CASE WHEN e.headers IS NULL THEN -e.headers_end ELSE e.headers_end END), ''::bytea ORDER BY e.n)
        || string_agg(
            coalesce(e.key, '') || coalesce(e.value, '') || coalesce(e.headers, ''), ''::bytea ORDER BY e.n)
    FROM (
        SELECT s.n, s.key, s.value, s.headers,
               (s.after - s.headers_bytes - s.value_bytes)::int AS key_end, (s.after - s.headers_bytes)::int AS value_end,
               s.after::int AS headers_end
        FROM (
            SELECT u.*, coalesce(octet_length(u.value), 0) AS value_bytes, coalesce(octet_length(u.headers), 0) AS headers_bytes,
                   1 + sum(coalesce(octet_length(u.key), 0) + coalesce(octet_length(u.value), 0)
                           + coalesce(octet_length(u.headers), 0)) OVER (ORDER BY u.n) AS after
            FROM (
                SELECT t.n, convert_to(t.key, 'UTF8') AS key, t.value, convert_to(t.headers, 'UTF8') AS headers
                FROM unnest(p_keys, p_values, p_headers) WITH ORDINALITY AS t (key, value, headers, n)
            ) AS u
        ) AS s
    ) AS e
$$;

-- Returns the first p_first events of a block as a block, and the others.
CREATE FUNCTION eventsql.split_block_v1(p_block bytea, p_events int, p_first int, OUT first bytea, OUT others bytea)
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    keys    text[];
    vals    bytea[];
    headers text[];
BEGIN
    SELECT array_agg(e.key ORDER BY e.n), array_agg(e.value ORDER BY e.n), array_agg(e.headers ORDER BY e.n)
    INTO keys, vals, headers
    FROM eventsql.block_events_v1(p_block, p_events) e;
    first := eventsql.pack_block_v1(keys[1:p_first], vals[1:p_first], headers[1:p_first]);
    others := eventsql.pack_block_v1(
        keys[p_first + 1:p_events], vals[p_first + 1:p_events], headers[p_first + 1:p_events]);
END $$;

-- Returns where the segment ends that an offset belongs to.
--
-- Errors: 23514 there is none: the error that inserting a row without a segment raises.
CREATE FUNCTION eventsql.segment_end_v1(p_stream_id int, p_partition int, p_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    result bigint;
BEGIN
    SELECT g.end_offset INTO result
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset <= p_offset
    ORDER BY g.first_offset DESC LIMIT 1;
    IF result > p_offset THEN
        RETURN result;
    END IF;
    RAISE EXCEPTION 'partition % of stream % has no segment for offset %', p_partition, p_stream_id, p_offset
        USING ERRCODE = 'check_violation', TABLE = 'segment';
END $$;

-- Cuts blocks where a segment ends. p_stream_ids to p_bases: one element for each partition; p_groups to p_blocks, and what is
-- returned in their place: one element for each block (see append_blocks_v1).
--
-- Errors: those of segment_end_v1.
CREATE FUNCTION eventsql.cut_blocks_v1(
    p_stream_ids int[], p_partitions int[], p_bases bigint[],
    p_groups int[], p_ends int[], p_events int[], p_blocks bytea[],
    OUT groups int[], OUT ends int[], OUT events int[], OUT blocks bytea[])
LANGUAGE plpgsql
AS $$
DECLARE
    first    bigint;
    last     bigint;
    boundary bigint;
    left_of  int;
    block    bytea;
    parts    record;
BEGIN
    groups := '{}';
    ends := '{}';
    events := '{}';
    blocks := '{}';
    FOR i IN 1 .. cardinality(p_groups) LOOP
        first := p_bases[p_groups[i]] + p_ends[i] - p_events[i];
        last := p_bases[p_groups[i]] + p_ends[i] - 1;
        block := p_blocks[i];
        LOOP
            boundary := eventsql.segment_end_v1(p_stream_ids[p_groups[i]], p_partitions[p_groups[i]], first);
            EXIT WHEN boundary > last;
            left_of := boundary - first;
            parts := eventsql.split_block_v1(block, (last - first + 1)::int, left_of);
            groups := groups || p_groups[i];
            ends := ends || (boundary - p_bases[p_groups[i]])::int;
            events := events || left_of;
            blocks := blocks || parts.first;
            first := boundary;
            block := parts.others;
        END LOOP;
        groups := groups || p_groups[i];
        ends := ends || p_ends[i];
        events := events || (last - first + 1)::int;
        blocks := blocks || block;
    END LOOP;
END $$;

-- Inserts events of one partition as blocks: for callers that have no blocks. The stream's partition is locked.
--
-- Errors: those of segment_end_v1.
CREATE FUNCTION eventsql.insert_as_blocks_v1(
    p_stream_id int, p_table text, p_partition int, p_base bigint, p_time timestamptz,
    p_keys text[], p_values bytea[], p_headers text[])
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    block_bytes_max CONSTANT int := 8000;
    count           int := cardinality(p_values);
    first           int := 1;
    segment_end     bigint;
    block_bytes     int;
    event_bytes     int;
    ends            int[] := '{}';
    events          int[] := '{}';
    blocks          bytea[] := '{}';
BEGIN
    WHILE first <= count LOOP
        segment_end := eventsql.segment_end_v1(p_stream_id, p_partition, p_base + first - 1);
        block_bytes := 4;
        FOR i IN first .. count + 1 LOOP
            event_bytes := 12 + coalesce(octet_length(p_keys[i]), 0) + coalesce(octet_length(p_values[i]), 0)
                + coalesce(octet_length(p_headers[i]), 0);
            IF i > count OR p_base + i - 1 >= segment_end OR (i > first AND block_bytes + event_bytes > block_bytes_max) THEN
                ends := ends || (i - 1);
                events := events || (i - first);
                blocks := blocks || eventsql.pack_block_v1(
                    p_keys[first:i - 1], p_values[first:i - 1],
                    ARRAY(SELECT h::json::text FROM unnest(p_headers[first:i - 1]) AS h)); -- fails unless it is JSON
                first := i;
                EXIT;
            END IF;
            block_bytes := block_bytes + event_bytes;
        END LOOP;
    END LOOP;
    EXECUTE format(
        'INSERT INTO eventsql.%I (partition, event_offset, events, published_at, block)'
        ' SELECT $1, $2 + e - 1, n, $3, b FROM (SELECT unnest($4) AS e, unnest($5) AS n, unnest($6) AS b) AS x',
        p_table || '__blocks')
    USING p_partition, p_base, p_time, ends, events, blocks;
END $$;

-- Appends one batch as append_v1 does, of events that the caller has packed into blocks.
--
-- p_streams, p_stream_ids, p_partitions, p_counts: as for append_v1.
-- p_groups, p_ends, p_events, p_blocks: one element for each block, in the order of the partitions. p_groups is the block's
-- element in p_partitions (from 1), p_events the number of its events, and p_ends that of the partition's events up to its end.
--
-- The caller does not know the offsets. So a block that crosses the end of a segment is cut here: refusing it would not be safe
-- for a batch that is in doubt, because that is resent unchanged.
--
-- Streams that store rows are accepted, too; their events are unpacked.
--
-- Errors: those of append_v1.
CREATE FUNCTION eventsql.append_blocks_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_groups int[], p_ends int[], p_events int[], p_blocks bytea[])
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
    stream          record;
    tables          text[] := array_fill(''::text, ARRAY[partition_count]);
    segment_end     bigint;
    is_crossing     boolean := false;
    cut             record;
    last            record;
    head            record;
    first_group     int := 1;
    last_group      int;
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
        SELECT p.map_version, s.name, s.table_name, s.storage INTO stream
        FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_ids[i] AND p.partition = p_partitions[i]
        FOR UPDATE OF p;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'partition % of stream % does not exist', p_partitions[i], p_streams[i]
                USING ERRCODE = 'ES004';
        ELSIF stream.name <> p_streams[i] THEN
            RAISE EXCEPTION 'stream % is %, not %', p_stream_ids[i], stream.name, p_streams[i]
                USING ERRCODE = 'ES012';
        ELSIF stream.map_version <> p_map_version THEN
            RAISE EXCEPTION 'map version is %, not %', stream.map_version, p_map_version USING ERRCODE = 'ES001';
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
            -- By ctid, as in append_v1.
            DELETE FROM eventsql.producer_batch
            WHERE ctid = last.tid AND producer_id = p_producer AND batch_number = last.batch_number
              AND stream_id = p_stream_ids[i] AND partition = p_partitions[i];
        END IF;
        bases[i] := head.next_offset;
        times[i] := head.published_at;
        IF stream.storage = 'rows' THEN
            tables[i] := stream.table_name;
        ELSE
            tables[i] := stream.table_name || '__blocks';
            SELECT g.end_offset INTO segment_end
            FROM eventsql.segment g
            WHERE g.stream_id = p_stream_ids[i] AND g.partition = p_partitions[i] AND g.first_offset <= head.next_offset
            ORDER BY g.first_offset DESC LIMIT 1;
            is_crossing := is_crossing OR segment_end IS NULL OR segment_end < head.next_offset + p_counts[i];
        END IF;
    END LOOP;

    IF duplicates = partition_count THEN
        RETURN bases;
    ELSIF duplicates > 0 THEN
        RAISE EXCEPTION 'batch % is stored in % of % partitions', p_number, duplicates, partition_count
            USING ERRCODE = 'ES005';
    END IF;

    IF is_crossing THEN
        cut := eventsql.cut_blocks_v1(p_stream_ids, p_partitions, bases, p_groups, p_ends, p_events, p_blocks);
    ELSE
        SELECT p_groups AS groups, p_ends AS ends, p_events AS events, p_blocks AS blocks INTO cut;
    END IF;
    -- One INSERT for each stream of the batch; planned each time, which costs less than it saves.
    WHILE first_group <= partition_count LOOP
        IF partition_count > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; wrote to % of % partitions',
                p_time_limit_ms, first_group - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        last_group := first_group;
        WHILE last_group < partition_count AND p_stream_ids[last_group + 1] = p_stream_ids[first_group] LOOP
            last_group := last_group + 1;
        END LOOP;
        EXECUTE format(
            CASE WHEN tables[first_group] LIKE '%\_\_blocks' THEN
                'INSERT INTO eventsql.%I (partition, event_offset, events, published_at, block)'
                ' SELECT ($1)[g], ($2)[g] + e - 1, c, ($3)[g], b'
            ELSE
                'INSERT INTO eventsql.%I (partition, event_offset, key, value, headers, published_at)'
                ' SELECT ($1)[g], ($2)[g] + e - c + u.n - 1, u.key, u.value, u.headers::json, ($3)[g]'
            END
            || ' FROM (SELECT unnest($4) AS g, unnest($5) AS e, unnest($6) AS c, unnest($7) AS b) AS x'
            || CASE WHEN tables[first_group] LIKE '%\_\_blocks' THEN ''
                ELSE ' CROSS JOIN LATERAL eventsql.block_events_v1(x.b, x.c) AS u' END
            || ' WHERE g BETWEEN $8 AND $9',
            tables[first_group])
        USING p_partitions, bases, times, cut.groups, cut.ends, cut.events, cut.blocks, first_group, last_group;
        first_group := last_group + 1;
    END LOOP;
    RETURN bases;
END $$;

-- Reads a page of blocks of each of several partitions of one stream in one round trip: as fetch_v2 does, but a row is a block.
-- distances: how far the offset of each event is below event_offset; NULL: the events have the offsets directly up to it.
-- erased_at: when the value of each event was erased; NULL: of none was.
--
-- The first block of a page contains its first offset or begins above it, and the last one contains the event that completes
-- the page, or that brings its bytes to p_max_bytes: the caller ignores the events before and after the page. The end of a page
-- that ends otherwise is a row without published_at, as in fetch_v2.
--
-- Errors: those of fetch_v2; ES021 the stream stores rows.
CREATE FUNCTION eventsql.fetch_blocks_v1(
    p_incarnation text, p_stream_id int, p_stream text, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, events int, published_at timestamptz, block bytea, distances int[],
    erased_at timestamptz[])
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
    row_bytes_max CONSTANT bigint := 8160; -- of one without a large value
    segments_max  CONSTANT int := 16; -- of one page: as many tables as a session locks at no cost for others
    stream        record;
    head          bigint;
    next          bigint;
    events_left   bigint;
    bytes_left    bigint;
    segment       text;
    segment_end   bigint;
    has_table     boolean;
    has_small     boolean;
    is_full       boolean;
    last          bigint;
    rows          int;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT s.name, s.storage INTO stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF stream.name <> p_stream THEN
        RAISE EXCEPTION 'stream % is %, not %', p_stream_id, stream.name, p_stream USING ERRCODE = 'ES012';
    ELSIF stream.storage <> 'blocks' THEN
        RAISE EXCEPTION 'stream % stores %, not blocks', p_stream, stream.storage USING ERRCODE = 'ES021';
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        SELECT b.next_offset INTO head
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_id AND b.partition = p_partitions[i]
        ORDER BY b.next_offset DESC LIMIT 1;
        IF head <= p_offsets[i] THEN
            CONTINUE;
        END IF;

        next := p_offsets[i];
        events_left := p_max_events;
        bytes_left := p_max_bytes[i];
        FOR n IN 1 .. segments_max LOOP
            -- The segment, and whether it has small blocks alone; NULL: it has no table.
            SELECT s.table_name, s.end_offset, pg_relation_size((
                       SELECT c.reltoastrelid FROM pg_class c
                       WHERE c.oid = to_regclass(format('eventsql.%I', s.table_name)))) = 0
            INTO segment, segment_end, has_small
            FROM eventsql.segment s
            WHERE s.stream_id = p_stream_id AND s.partition = p_partitions[i] AND s.first_offset <= next
            ORDER BY s.first_offset DESC LIMIT 1;
            has_table := has_small IS NOT NULL;
            IF segment_end IS NULL OR segment_end <= next THEN
                SELECT g.table_name, coalesce(g.end_offset, least(head, (
                           SELECT min(s.first_offset) FROM eventsql.segment s
                           WHERE s.stream_id = p_stream_id AND s.partition = p_partitions[i]
                             AND s.first_offset > next))),
                       g.table_name IS NOT NULL, false
                INTO segment, segment_end, has_table, has_small
                FROM eventsql.segment_at_v1(p_stream_id, p_partitions[i], next) g;
            END IF;

            rows := 0;
            IF has_table THEN
                last := NULL;
                IF least(segment_end, head) >= next + events_left OR NOT has_small
                    OR row_bytes_max * least(events_left, head - next) > bytes_left
                THEN
                    -- The first block that completes the page, if there is one. Of the first one, the events below the page
                    -- do not count, as far as none is missing. OFFSET 0 keeps the blocks themselves out of the window
                    -- function's memory.
                    EXECUTE format(
                        'SELECT e FROM ('
                        '  SELECT e, sum(least(events, e - $1 + 1)) OVER w AS events, sum(bytes) OVER w AS bytes FROM ('
                        '    SELECT event_offset AS e, events, octet_length(block)::bigint AS bytes FROM eventsql.%I'
                        '    WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2 OFFSET 0'
                        '  ) AS blocks WINDOW w AS (ORDER BY e ROWS UNBOUNDED PRECEDING)'
                        ') AS counted WHERE events >= $2 OR bytes >= $3 ORDER BY e LIMIT 1', segment)
                    INTO last USING next, events_left, bytes_left;
                END IF;
                is_full := last IS NOT NULL;
                RETURN QUERY EXECUTE format(
                    'SELECT %s, event_offset, events, published_at, block, distances, erased_at FROM eventsql.%I'
                    ' WHERE event_offset >= $1 AND event_offset <= $2 ORDER BY event_offset', i - 1, segment)
                USING next, coalesce(last, segment_end);
                GET DIAGNOSTICS rows = ROW_COUNT;
            END IF;

            IF rows = 0 THEN
                IF n = 1 THEN -- neither the segment nor, in it, an event
                    page := i - 1;
                    event_offset := least(head, segment_end);
                    RETURN NEXT;
                END IF;
                EXIT;
            ELSIF is_full THEN
                EXIT;
            ELSIF segment_end >= head THEN
                page := i - 1;
                event_offset := head;
                RETURN NEXT;
                EXIT;
            END IF;
            EXIT WHEN NOT has_small; -- its bytes were not counted; the page may be continued
            events_left := events_left - (segment_end - next);
            bytes_left := bytes_left - row_bytes_max * rows;
            next := segment_end;
            EXIT WHEN events_left <= 0 OR bytes_left <= 0;
        END LOOP;
    END LOOP;
END $$;

-- Returns the events of one partition from p_from on and below p_below, in the order of their offsets, whatever the stream's
-- storage: only the segments, and in them the blocks, that have such events are read. A condition on event_offset alone makes
-- PostgreSQL read every block of the stream, because it cannot know which blocks can have such events. The result is kept in
-- work_mem, beyond that in a temporary file.
--
-- Errors: P0002 there is no such partition.
CREATE FUNCTION eventsql.event_range_v1(p_stream text, p_partition int, p_from bigint, p_below bigint)
RETURNS TABLE (
    partition int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz,
    erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    stream  record;
    segment record;
    next    bigint;
    below   bigint;
BEGIN
    SELECT s.stream_id, s.storage, greatest(p.log_start, p_from) AS from_offset, least(h.next_offset, p_below) AS below
    INTO stream
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    WHERE s.name = p_stream AND p.partition = p_partition;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream USING ERRCODE = 'no_data_found';
    END IF;
    next := stream.from_offset;
    below := stream.below;
    WHILE next < below LOOP
        segment := eventsql.segment_at_v1(stream.stream_id, p_partition, next);
        EXIT WHEN segment.table_name IS NULL; -- expired since
        IF stream.storage = 'rows' THEN
            RETURN QUERY EXECUTE format(
                'SELECT partition, event_offset, key, value, headers, published_at, erased_at FROM eventsql.%I'
                ' WHERE event_offset >= $1 AND event_offset < $2 ORDER BY event_offset', segment.table_name)
            USING next, below;
        ELSE
            -- The last block is the first one that ends at the last offset or above it.
            RETURN QUERY EXECUTE format(
                'SELECT * FROM ('
                '  SELECT b.partition, b.event_offset - coalesce(b.distances[e.n], b.events - e.n) AS event_offset,'
                '         e.key, e.value, e.headers::json, b.published_at, b.erased_at[e.n]'
                '  FROM (SELECT * FROM eventsql.%1$I WHERE event_offset >= $1 AND event_offset <= coalesce(('
                '          SELECT l.event_offset FROM eventsql.%1$I l WHERE l.event_offset >= $2 - 1'
                '          ORDER BY l.event_offset LIMIT 1), $2) ORDER BY event_offset) AS b'
                '  CROSS JOIN LATERAL eventsql.block_events_v1(b.block, b.events) AS e'
                ') AS events WHERE event_offset >= $1 AND event_offset < $2', segment.table_name)
            USING next, below;
        END IF;
        next := segment.end_offset;
    END LOOP;
END $$;

-- As in version 10, also of blocks.
CREATE OR REPLACE FUNCTION eventsql.events_between_v1(p_stream text, p_from timestamptz, p_to timestamptz)
RETURNS TABLE (
    partition int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz,
    erased_at timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    of_partition record;
BEGIN
    IF NOT EXISTS (SELECT FROM eventsql.stream s WHERE s.name = p_stream) THEN
        RAISE EXCEPTION 'stream % does not exist', p_stream USING ERRCODE = 'no_data_found';
    END IF;
    FOR of_partition IN
        SELECT p.partition
        FROM eventsql.stream s
        JOIN eventsql.stream_partition p USING (stream_id)
        WHERE s.name = p_stream
        ORDER BY p.partition
    LOOP
        RETURN QUERY SELECT * FROM eventsql.event_range_v1(
            p_stream, of_partition.partition, eventsql.offset_at_v1(p_stream, of_partition.partition, p_from),
            eventsql.offset_at_v1(p_stream, of_partition.partition, p_to));
    END LOOP;
END $$;

-- As in version 8, also of blocks, whose events have one time.
CREATE OR REPLACE FUNCTION eventsql.offset_at_v1(p_stream text, p_partition int, p_time timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    id        int;
    first     text; -- the offset of a row's first event
    low       bigint;
    high      bigint;
    middle    bigint;
    result    bigint;
    probed    bigint;
    found     bigint;
    last      bigint;
    published timestamptz;
    segment   record;
BEGIN
    SELECT s.stream_id, h.log_start, h.next_offset,
           CASE s.storage WHEN 'rows' THEN 'event_offset'
               ELSE 'event_offset - coalesce(distances[1], events - 1)' END
    INTO STRICT id, low, high, first
    FROM eventsql.partition_head h JOIN eventsql.stream s ON s.name = h.stream
    WHERE h.stream = p_stream AND h.partition = p_partition;
    result := high;
    WHILE low < high LOOP
        middle := low + (high - low) / 2;
        probed := middle;
        found := NULL;
        WHILE found IS NULL AND probed < high LOOP
            SELECT * INTO segment FROM eventsql.segment_at_v1(id, p_partition, probed);
            IF to_regclass('eventsql.' || quote_ident(segment.table_name)) IS NOT NULL THEN
                EXECUTE format(
                    'SELECT %s, event_offset, published_at FROM eventsql.%I WHERE event_offset >= $1'
                    ' ORDER BY event_offset LIMIT 1', first, segment.table_name)
                INTO found, last, published USING probed;
                IF found >= high THEN
                    found := NULL;
                END IF;
            END IF;
            probed := coalesce(segment.end_offset, (
                SELECT min(g.first_offset) FROM eventsql.segment g
                WHERE g.stream_id = id AND g.partition = p_partition AND g.first_offset > probed), high);
        END LOOP;
        IF found IS NULL THEN
            high := middle;
        ELSIF published < p_time THEN
            low := last + 1;
        ELSE
            result := found;
            high := least(middle, found);
        END IF;
    END LOOP;
    RETURN result;
END $$;

-- Creates the table of a new stream, and its views.
CREATE FUNCTION eventsql.create_events_table_v1(p_table text, p_storage text, p_json boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    events text := format('eventsql.%I', p_table);
    blocks text := format('eventsql.%I', p_table || '__blocks');
BEGIN
    IF p_storage = 'rows' THEN
        EXECUTE format(
            'CREATE TABLE %s ('
            '  partition    int         NOT NULL,'
            '  event_offset bigint      NOT NULL,'
            '  key          text,'
            '  value        bytea,'
            '  headers      json,'
            '  published_at timestamptz NOT NULL,'
            '  erased_at    timestamptz'
            ') PARTITION BY LIST (partition)', events);
        -- Partitions and segments inherit it. A clause of CREATE TABLE only since PostgreSQL 16.
        -- Uncompressed, so that fetch_v2 can bound the size of rows by that of the TOAST table.
        EXECUTE format(
            'ALTER TABLE %s ALTER COLUMN key SET STORAGE EXTERNAL, ALTER COLUMN value SET STORAGE EXTERNAL,'
            ' ALTER COLUMN headers SET STORAGE EXTERNAL, ALTER COLUMN value SET STATISTICS 0', events);
    ELSE
        EXECUTE format(
            'CREATE TABLE %s ('
            '  partition    int         NOT NULL,'
            '  event_offset bigint      NOT NULL,' -- of the last event
            '  events       int         NOT NULL,'
            '  published_at timestamptz NOT NULL,'
            '  block        bytea       NOT NULL,'
            '  distances    int[],' -- how far the offset of each event is below event_offset; NULL: no offset is missing
            '  erased_at    timestamptz[]' -- when the value of each event was erased; NULL: of none was
            ') PARTITION BY LIST (partition)', blocks);
        EXECUTE format(
            'ALTER TABLE %s ALTER COLUMN block SET STORAGE EXTERNAL, ALTER COLUMN block SET STATISTICS 0', blocks);
        EXECUTE format(
            'CREATE VIEW %s AS'
            ' SELECT b.partition, b.event_offset - coalesce(b.distances[e.n], b.events - e.n) AS event_offset,'
            '        e.key, e.value, e.headers::json AS headers, b.published_at, b.erased_at[e.n] AS erased_at'
            ' FROM %s AS b CROSS JOIN LATERAL eventsql.block_events_v1(b.block, b.events) AS e', events, blocks);
        PERFORM eventsql.copy_grants_v1(events::regclass, blocks::regclass);
    END IF;
    IF p_json THEN
        EXECUTE format(
            'CREATE VIEW eventsql.%I AS'
            ' SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers, published_at'
            ' FROM %s', p_table || '__json', events);
    END IF;
END $$;

-- Creates a stream as create_stream_v1 does, with its retention, compaction and storage; an existing one stays as it is.
--
-- Errors: 22023 invalid name or partitions; 23514 another setting is invalid; ES019 the stream is being deleted.
CREATE FUNCTION eventsql.create_stream_v3(
    p_name text, p_partitions int, p_segment_size bigint, p_json boolean, p_map_version int,
    p_age interval, p_bytes bigint, p_events bigint, p_handled boolean, p_abandoned_after interval,
    p_compaction boolean, p_tombstone_delay interval, p_storage text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    new_id    int;
    its_table text := eventsql.stream_table_name_v1(p_name);
BEGIN
    IF p_name IS NULL OR p_name !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' OR octet_length(p_name) > 100 THEN
        RAISE EXCEPTION 'invalid name of a stream: %', p_name USING ERRCODE = '22023';
    ELSIF p_partitions > 1000 THEN
        RAISE EXCEPTION 'a stream has at most 1000 partitions, not %', p_partitions USING ERRCODE = '22023';
    END IF;
    -- "ESST": a stream that another process creates at the same time is not changed.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_name));
    INSERT INTO eventsql.stream (
        name, table_name, partitions, segment_size, json, retention, retention_bytes, retention_events, expire_handled,
        abandoned_after, compaction, tombstone_delay, storage)
    VALUES (p_name, its_table, p_partitions, p_segment_size, p_json, p_age, p_bytes, p_events, p_handled,
            p_abandoned_after, p_compaction, p_tombstone_delay, p_storage)
    ON CONFLICT ON CONSTRAINT stream_name_unique DO NOTHING
    RETURNING stream_id INTO new_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO eventsql.stream_partition (stream_id, partition, map_version)
    SELECT new_id, p, p_map_version FROM generate_series(0, p_partitions - 1) AS p;
    -- The heads of the empty partitions.
    INSERT INTO eventsql.producer_batch
        (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
    SELECT new_id, p, 0, 0, '00000000-0000-0000-0000-000000000000', 0, clock_timestamp()
    FROM generate_series(0, p_partitions - 1) AS p;
    PERFORM eventsql.create_events_table_v1(its_table, p_storage, p_json);
    PERFORM eventsql.apply_latest_view_v1(p_name);
END $$;

-- As in version 8, also of a stream that stores blocks.
CREATE OR REPLACE FUNCTION eventsql.create_segment_v1(p_stream_id int, p_partition int, p_first_offset bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stream       record;
    size         bigint;
    end_offset   bigint;
    number       bigint;
    events       text;
    parent       text;
    of_partition text;
    name         text;
    many_rows    int;
BEGIN
    -- Waits for a deletion of the stream, which would not wait for this table.
    SELECT s.table_name, s.segment_size, s.compaction, s.storage,
           CASE s.storage WHEN 'rows' THEN 'value' ELSE 'block' END AS large_column
    INTO stream
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream_id USING ERRCODE = 'ES004';
    END IF;
    size := eventsql.next_segment_size_v1(p_stream_id, p_partition);
    end_offset := CASE
        WHEN size = stream.segment_size THEN (p_first_offset / size + 1) * size
        ELSE p_first_offset + size END;
    end_offset := least(end_offset, (
        SELECT min(g.first_offset) FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset > p_first_offset));
    number := greatest(p_first_offset / stream.segment_size, (
        SELECT max(g.number) + 1 FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition));

    events := format('eventsql.%I', stream.table_name);
    parent := CASE stream.storage WHEN 'rows' THEN events ELSE format('eventsql.%I', stream.table_name || '__blocks') END;
    of_partition := format('eventsql.%I', stream.table_name || '__p' || p_partition);
    name := stream.table_name || '__p' || p_partition || CASE
        WHEN p_first_offset = number * stream.segment_size AND end_offset = p_first_offset + stream.segment_size
        THEN '_s' ELSE '_v' END || number;
    IF to_regclass(format('eventsql.%I', name)) IS NOT NULL THEN -- a table that was detached and kept
        name := stream.table_name || '__p' || p_partition || '_v' || number;
    END IF;
    IF octet_length(name) > 63 THEN
        RAISE EXCEPTION 'the name of table % is too long', name USING ERRCODE = '42622';
    END IF;

    IF to_regclass(of_partition) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)'
            ' PARTITION BY RANGE (event_offset)', of_partition, parent);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', of_partition, stream.large_column);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)', parent, of_partition, p_partition);
        PERFORM eventsql.copy_grants_v1(events::regclass, of_partition::regclass);
    END IF;
    -- The primary key is the only index, unless the stream is compacted: offsets are looked up, and read in their order.
    -- INCLUDING CONSTRAINTS, because a table without the constraints that a user has added to the stream's table could not
    -- be attached.
    -- Autovacuum: events are only inserted, and dropped with their segment, and no plan of the library needs
    -- statistics; by default autovacuum would read a growing segment again and again (decision 10).
    -- toast_tuple_target, its maximum: a row of 8 kB is not moved out of its page, one with a large value is.
    many_rows := CASE stream.storage WHEN 'rows' THEN 500000 ELSE 20000 END;
    EXECUTE format(
        'CREATE TABLE eventsql.%I ('
        '  LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE, PRIMARY KEY (event_offset)'
        ') WITH ('
        '  autovacuum_vacuum_insert_threshold = %s, autovacuum_vacuum_insert_scale_factor = 0.5,'
        '  autovacuum_analyze_threshold = %s, autovacuum_analyze_scale_factor = 0.5,'
        '  vacuum_truncate = false, toast.vacuum_truncate = false%s)',
        name, of_partition, many_rows, many_rows,
        CASE stream.storage WHEN 'rows' THEN '' ELSE ', toast_tuple_target = 8160' END);
    -- No samples of values in pg_statistic, where no erasure would find them.
    EXECUTE format('ALTER TABLE eventsql.%I ALTER COLUMN %I SET STATISTICS 0', name, stream.large_column);
    IF stream.compaction THEN
        PERFORM eventsql.add_key_index_v1(name);
    END IF;
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION eventsql.%I FOR VALUES FROM (%s) TO (%s)',
        of_partition, name, p_first_offset, end_offset);
    -- A fetch names the segment, so the grants of the stream's table do not suffice.
    PERFORM eventsql.copy_grants_v1(events::regclass, format('eventsql.%I', name)::regclass);
    INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name)
    VALUES (p_stream_id, p_partition, p_first_offset, end_offset, number, name);
END $$;

-- As in version 8, also of a stream that stores blocks: there, the grants of the view.
CREATE OR REPLACE FUNCTION eventsql.apply_stream_grants_v1(p_stream text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    events regclass;
    blocks regclass;
BEGIN
    SELECT format('eventsql.%I', s.table_name)::regclass, to_regclass(format('eventsql.%I', s.table_name || '__blocks'))
    INTO STRICT events, blocks
    FROM eventsql.stream s WHERE s.name = p_stream;
    PERFORM eventsql.copy_grants_v1(events, t.relid)
    FROM pg_partition_tree(coalesce(blocks, events)) t
    WHERE t.relid <> events;
END $$;

-- Erases events in the blocks of a segment, as erase_range_v1 does in rows. p_key NULL: all events of the range, which have no
-- value that a reader has seen. Returns how many events were erased. Locks the rows that it changes.
--
-- Index: the primary key of the segment, in its order.
CREATE FUNCTION eventsql.erase_in_blocks_v1(
    p_segment text, p_from bigint, p_below bigint, p_key text, p_blanked text[], p_copies_of text[])
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    own    record;
    erased record;
    result bigint := 0;
BEGIN
    -- The last block is the first one that ends at the last offset or above it.
    FOR own IN EXECUTE format(
        'SELECT event_offset, events, block, distances, erased_at FROM eventsql.%1$I'
        ' WHERE event_offset >= $1 AND event_offset <= coalesce(('
        '   SELECT l.event_offset FROM eventsql.%1$I l WHERE l.event_offset >= $2 - 1 ORDER BY l.event_offset LIMIT 1), $2)'
        ' AND ($3 IS NULL OR position(convert_to($3, ''UTF8'') IN block) > 0) ORDER BY event_offset FOR UPDATE', p_segment)
        USING p_from, p_below, p_key
    LOOP
        SELECT count(*) FILTER (WHERE e.is_hit) AS events,
               eventsql.pack_block_v1(
                   array_agg(e.key ORDER BY e.n),
                   array_agg(CASE WHEN NOT e.is_hit THEN e.value END ORDER BY e.n),
                   array_agg(CASE WHEN e.is_hit THEN eventsql.blank_headers_v1(e.headers::json, p_blanked)::text
                       ELSE e.headers END ORDER BY e.n)) AS block,
               array_agg(CASE WHEN e.is_hit AND (e.value IS NOT NULL OR p_key IS NULL) THEN clock_timestamp()
                   ELSE own.erased_at[e.n] END ORDER BY e.n) AS times
        INTO erased
        FROM (
            SELECT u.*, coalesce(
                       own.event_offset - coalesce(own.distances[u.n], own.events - u.n) BETWEEN p_from AND p_below - 1
                       AND (p_key IS NULL OR (
                           u.key = p_key AND (u.value IS NOT NULL OR u.headers IS NOT NULL AND cardinality(p_blanked) > 0)
                           AND (p_copies_of IS NULL OR eventsql.header_v1(u.headers::json, 'eventsql-dead-letter-stream')
                               = ANY (p_copies_of)))), false) AS is_hit
            FROM eventsql.block_events_v1(own.block, own.events) AS u) AS e;
        IF erased.events > 0 THEN
            EXECUTE format(
                'UPDATE eventsql.%I SET block = $2, erased_at = CASE WHEN num_nonnulls(VARIADIC $3) > 0 THEN $3 END'
                ' WHERE event_offset = $1', p_segment)
            USING own.event_offset, erased.block, erased.times;
            result := result + erased.events;
        END IF;
    END LOOP;
    RETURN result;
END $$;

-- As in version 11, also in blocks.
CREATE OR REPLACE FUNCTION eventsql.erase_range_v1(
    p_erasure uuid, p_stream_id int, p_partition int, p_copies_of text[], p_max_offsets bigint,
    OUT scanned bigint, OUT erased bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    own      eventsql.erasure;
    part     eventsql.erasure_range;
    segment  record;
    upto     bigint;
    blanked  text[];
    has_gaps boolean;
    stored   text;
BEGIN
    SELECT * INTO STRICT own FROM eventsql.erasure e WHERE e.erasure_id = p_erasure;
    SELECT * INTO STRICT part FROM eventsql.erasure_range r
    WHERE r.erasure_id = p_erasure AND r.stream_id = p_stream_id AND r.partition = p_partition;
    SELECT g.table_name, g.first_offset, g.end_offset INTO segment
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.end_offset > part.next_offset
    ORDER BY g.first_offset LIMIT 1;
    SELECT s.storage INTO STRICT stored FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    erased := 0;
    scanned := 0;
    IF segment.table_name IS NULL OR segment.first_offset >= part.end_offset THEN
        upto := part.end_offset;
    ELSIF to_regclass(format('eventsql.%I', segment.table_name)) IS NULL THEN
        upto := least(segment.end_offset, part.end_offset);
    ELSE
        part.next_offset := greatest(part.next_offset, segment.first_offset);
        upto := least(segment.end_offset, part.end_offset, part.next_offset + p_max_offsets);
        blanked := own.headers || CASE WHEN p_copies_of IS NULL THEN '{}'::text[]
            ELSE ARRAY['eventsql-dead-letter-error', 'eventsql-dead-letter-headers'] END;
        IF stored = 'rows' THEN
            EXECUTE format(
                'UPDATE eventsql.%I SET value = NULL, headers = eventsql.blank_headers_v1(headers, $4),'
                ' erased_at = CASE WHEN value IS NULL THEN erased_at ELSE clock_timestamp() END'
                ' WHERE event_offset >= $1 AND event_offset < $2 AND key = $3'
                ' AND (value IS NOT NULL OR headers IS NOT NULL AND cardinality($4) > 0)'
                ' AND ($5 IS NULL OR eventsql.header_v1(headers, ''eventsql-dead-letter-stream'') = ANY ($5))',
                segment.table_name)
            USING part.next_offset, upto, own.key, blanked, p_copies_of;
            GET DIAGNOSTICS erased = ROW_COUNT;
            -- A gap is what compaction has deleted, which remains in the file.
            EXECUTE format(
                'SELECT $2 - $1 > count(*) FROM eventsql.%I WHERE event_offset >= $1 AND event_offset < $2',
                segment.table_name)
            INTO has_gaps USING part.next_offset, upto;
        ELSE
            erased := eventsql.erase_in_blocks_v1(segment.table_name, part.next_offset, upto, own.key, blanked, p_copies_of);
            EXECUTE format(
                'SELECT $2 - $1 > count(*) FROM eventsql.%1$I AS b CROSS JOIN LATERAL generate_series(1, b.events) AS n'
                ' WHERE b.event_offset >= $1 AND b.event_offset <= coalesce(('
                '   SELECT l.event_offset FROM eventsql.%1$I l WHERE l.event_offset >= $2 - 1'
                '   ORDER BY l.event_offset LIMIT 1), $2)'
                ' AND b.event_offset - coalesce(b.distances[n], b.events - n) BETWEEN $1 AND $2 - 1', segment.table_name)
            INTO has_gaps USING part.next_offset, upto;
        END IF;
        scanned := upto - part.next_offset;
        IF erased > 0 OR has_gaps THEN
            INSERT INTO eventsql.erasure_file (erasure_id, table_name, erased_in)
            VALUES (p_erasure, segment.table_name, pg_current_xact_id())
            ON CONFLICT (erasure_id, table_name) DO UPDATE SET erased_in = excluded.erased_in;
        END IF;
    END IF;
    UPDATE eventsql.erasure_range r SET next_offset = upto
    WHERE r.erasure_id = p_erasure AND r.stream_id = p_stream_id AND r.partition = p_partition;
END $$;

-- As in version 11, also of blocks.
CREATE OR REPLACE FUNCTION eventsql.erased_offsets_v1(p_stream_id int, p_partition int, p_offsets bigint[])
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    segment_table text;
    segment_first bigint := 0;
    segment_end   bigint := 0;
    next          bigint;
    query         text := CASE (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_id)
        WHEN 'rows' THEN 'SELECT event_offset FROM eventsql.%I WHERE event_offset = $1 AND erased_at IS NOT NULL'
        ELSE
            'SELECT $1 FROM (SELECT * FROM eventsql.%I WHERE event_offset >= $1 ORDER BY event_offset LIMIT 1) AS b'
            ' CROSS JOIN LATERAL generate_series(1, b.events) AS n'
            ' WHERE b.event_offset - coalesce(b.distances[n], b.events - n) = $1 AND b.erased_at[n] IS NOT NULL' END;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1163085138, p_stream_id);
    -- A new statement sees what was erased before the lock was granted.
    FOREACH next IN ARRAY p_offsets LOOP
        IF next >= coalesce(segment_end, next) OR next < segment_first THEN
            SELECT s.table_name, s.first_offset, s.end_offset INTO segment_table, segment_first, segment_end
            FROM eventsql.segment_at_v1(p_stream_id, p_partition, next) s;
        END IF;
        IF to_regclass('eventsql.' || quote_ident(segment_table)) IS NOT NULL THEN
            RETURN QUERY EXECUTE format(query, segment_table) USING next;
        END IF;
    END LOOP;
END $$;

-- As in version 11, also to streams that store blocks.
CREATE OR REPLACE FUNCTION eventsql.append_transferred_v2(
    p_producer uuid, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_previous_numbers bigint[], p_numbers bigint[],
    p_keys text[], p_values bytea[], p_headers text[], p_erased int[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    bases       bigint[];
    first_event int := 1;
    its_segment text;
    erased      int;
BEGIN
    bases := eventsql.append_transferred_v1(
        p_producer, p_map_version, p_incarnation, p_time_limit_ms, p_streams, p_stream_ids, p_partitions, p_counts,
        p_previous_numbers, p_numbers, p_keys, p_values, p_headers);
    FOR i IN 1 .. CASE WHEN cardinality(p_erased) > 0 THEN cardinality(p_partitions) ELSE 0 END LOOP
        FOREACH erased IN ARRAY p_erased LOOP
            CONTINUE WHEN erased NOT BETWEEN first_event AND first_event + p_counts[i] - 1;
            SELECT s.table_name INTO its_segment
            FROM eventsql.segment_at_v1(p_stream_ids[i], p_partitions[i], bases[i] + erased - first_event) s;
            IF (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_ids[i]) = 'rows' THEN
                EXECUTE format(
                    'UPDATE eventsql.%I SET value = NULL, erased_at = clock_timestamp() WHERE event_offset = $1',
                    its_segment)
                USING bases[i] + erased - first_event;
            ELSE
                PERFORM eventsql.erase_in_blocks_v1(
                    its_segment, bases[i] + erased - first_event, bases[i] + erased - first_event + 1, NULL, '{}', NULL);
            END IF;
        END LOOP;
        first_event := first_event + p_counts[i];
    END LOOP;
    RETURN bases;
END $$;

-- The previous releases call it. As in version 8, but the events of a stream that stores blocks are packed.
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
    bases           bigint[] := array_fill(0::bigint, ARRAY[partition_count]);
    times           timestamptz[] := array_fill(clock_timestamp(), ARRAY[partition_count]);
    duplicates      int := 0;
    stored_map      int;
    stored_stream   text;
    stored_table    text;
    tables          text[] := array_fill(''::text, ARRAY[partition_count]);
    stored_storage  text;
    storages        text[] := array_fill(''::text, ARRAY[partition_count]);
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
        SELECT p.map_version, s.name, s.table_name, s.storage INTO stored_map, stored_stream, stored_table, stored_storage
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
        tables[i] := stored_table;
        storages[i] := stored_storage;
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
        insert_events := format(
            'INSERT INTO eventsql.%I (partition, event_offset, key, value, headers, published_at)'
            ' SELECT ($1)[g], ($2)[g] + x, k, v, h::json, ($3)[g]'
            ' FROM (SELECT unnest($4) AS g, unnest($5) AS x, unnest($6) AS k, unnest($7) AS v, unnest($8) AS h) AS e',
            tables[first_group]);
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

-- As in version 8, but it refuses a stream that stores blocks.
--
-- Errors: ES011, ES012 as before; ES021 the stream stores blocks.
CREATE OR REPLACE FUNCTION eventsql.fetch_v2(
    p_incarnation text, p_stream_id int, p_stream text, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz)
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
    small_event_bytes CONSTANT bigint := 2000;
    segments_max      CONSTANT int := 16; -- of one page: as many tables as a session locks at no cost for others
    stored_stream text;
    stored_as     text;
    head          bigint;
    next          bigint;
    events_left   int;
    bytes_left    bigint;
    segment       text;
    segment_end   bigint;
    has_table     boolean;
    has_small     boolean;
    page_bytes    bigint;
    counted       boolean;
    rows          int;
    events        text;
    event_bytes   text := '(coalesce(octet_length(value), 0) + coalesce(octet_length(key), 0)'
                          ' + coalesce(octet_length(headers::text), 0))';
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT s.name, s.storage INTO stored_stream, stored_as FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF stored_stream <> p_stream THEN
        RAISE EXCEPTION 'stream % is %, not %', p_stream_id, stored_stream, p_stream USING ERRCODE = 'ES012';
    ELSIF stored_as <> 'rows' THEN
        RAISE EXCEPTION 'stream % stores %, which this release of the library cannot read; use a later one',
            p_stream, stored_as USING ERRCODE = 'ES021';
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        SELECT b.next_offset INTO head
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_id AND b.partition = p_partitions[i]
        ORDER BY b.next_offset DESC LIMIT 1;
        IF head <= p_offsets[i] THEN
            CONTINUE;
        END IF;

        next := p_offsets[i];
        events_left := p_max_events;
        bytes_left := p_max_bytes[i];
        FOR n IN 1 .. segments_max LOOP
            -- The segment, and whether it has small events alone; NULL: it has no table.
            SELECT s.table_name, s.end_offset, pg_relation_size((
                       SELECT c.reltoastrelid FROM pg_class c
                       WHERE c.oid = to_regclass(format('eventsql.%I', s.table_name)))) = 0
            INTO segment, segment_end, has_small
            FROM eventsql.segment s
            WHERE s.stream_id = p_stream_id AND s.partition = p_partitions[i] AND s.first_offset <= next
            ORDER BY s.first_offset DESC LIMIT 1;
            has_table := has_small IS NOT NULL;
            IF segment_end IS NULL OR segment_end <= next THEN
                SELECT g.table_name, coalesce(g.end_offset, least(head, (
                           SELECT min(s.first_offset) FROM eventsql.segment s
                           WHERE s.stream_id = p_stream_id AND s.partition = p_partitions[i]
                             AND s.first_offset > next))),
                       g.table_name IS NOT NULL, false
                INTO segment, segment_end, has_table, has_small
                FROM eventsql.segment_at_v1(p_stream_id, p_partitions[i], next) g;
            END IF;

            rows := 0;
            IF has_table THEN
                events := format(
                    'SELECT CASE WHEN erased_at IS NULL THEN %1$s ELSE -1 - %1$s END AS page,'
                    ' event_offset, key, value, headers, published_at'
                    ' FROM eventsql.%2$I WHERE event_offset >= $1 ORDER BY event_offset LIMIT $2', i - 1, segment);
                page_bytes := small_event_bytes * least(events_left, head - next);
                counted := page_bytes > bytes_left OR NOT has_small;
                IF counted THEN
                    EXECUTE format('SELECT sum(%s) FROM (%s) AS events', event_bytes, events)
                    INTO page_bytes USING next, events_left;
                END IF;
                IF page_bytes > bytes_left THEN
                    events := format(
                        'SELECT page, event_offset, key, value, headers, published_at FROM ('
                        '  SELECT *, sum(%1$s) OVER (ORDER BY event_offset ROWS UNBOUNDED PRECEDING) - %1$s AS bytes_before'
                        '  FROM (%2$s) AS events'
                        ') AS counted WHERE bytes_before < $3', event_bytes, events);
                END IF;
                RETURN QUERY EXECUTE events USING next, events_left, bytes_left;
                GET DIAGNOSTICS rows = ROW_COUNT;
                IF NOT counted THEN
                    page_bytes := small_event_bytes * rows;
                END IF;
            END IF;

            IF rows = 0 THEN
                IF n = 1 THEN -- neither the segment nor, in it, an event
                    page := i - 1;
                    event_offset := least(head, segment_end);
                    RETURN NEXT;
                END IF;
                EXIT;
            ELSIF rows = events_left OR page_bytes >= bytes_left THEN
                EXIT;
            ELSIF segment_end >= head THEN
                page := i - 1;
                event_offset := head;
                RETURN NEXT;
                EXIT;
            END IF;
            next := segment_end;
            events_left := events_left - rows;
            bytes_left := bytes_left - page_bytes;
        END LOOP;
    END LOOP;
END $$;

-- As in version 16, also of a stream that stores blocks.
CREATE OR REPLACE FUNCTION eventsql.drop_deleted_stream_v1(p_name text, p_max int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    stream_table text;
    level        text;
    found_table  record;
    dropped      int := 0;
BEGIN
    SELECT d.table_name INTO stream_table FROM eventsql.deleted_stream d WHERE d.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Segments, also those that are detached, then the tables of the partitions.
    FOREACH level IN ARRAY ARRAY['__p[0-9]+_[sv][0-9]+$', '__p[0-9]+$'] LOOP
        FOR found_table IN
            SELECT c.oid::regclass AS name
            FROM pg_class c
            WHERE c.relname ~ ('^' || stream_table || level) AND c.relkind IN ('r', 'p')
              AND c.relnamespace = (SELECT r.relnamespace FROM pg_class r WHERE r.oid = 'eventsql.stream'::regclass)
            ORDER BY c.relname LIMIT p_max
        LOOP
            EXECUTE format('DROP TABLE %s', found_table.name);
            dropped := dropped + 1;
        END LOOP;
        IF dropped > 0 THEN
            RETURN true;
        END IF;
    END LOOP;
    FOR found_table IN -- the views that the library has created
        SELECT c.oid::regclass AS name
        FROM pg_class c
        WHERE c.relname IN (stream_table || '__json', stream_table || '__latest') AND c.relkind = 'v'
          AND c.relnamespace = (SELECT r.relnamespace FROM pg_class r WHERE r.oid = 'eventsql.stream'::regclass)
    LOOP
        EXECUTE format('DROP VIEW %s', found_table.name);
    END LOOP;
    IF to_regclass(format('eventsql.%I', stream_table || '__blocks')) IS NULL THEN
        EXECUTE format('DROP TABLE IF EXISTS eventsql.%I', stream_table);
    ELSE
        EXECUTE format('DROP VIEW IF EXISTS eventsql.%I', stream_table);
        EXECUTE format('DROP TABLE eventsql.%I', stream_table || '__blocks');
    END IF;
    DELETE FROM eventsql.deleted_stream d WHERE d.name = p_name;
    RETURN false;
END $$;

-- Creates the function append_blocks_<id> of a stream that stores blocks, or replaces it. It appends one batch of blocks to
-- partitions of the stream, all or none, in one round trip, with plans that are kept, as append_v2_<id> does for rows. Its
-- parameters and errors are those of append_blocks_v1, but p_stream is the name of the stream.
CREATE FUNCTION eventsql.create_append_blocks_function_v1(p_stream_id int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $create$
DECLARE
    its_table text;
BEGIN
    SELECT s.table_name INTO STRICT its_table FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION eventsql.append_blocks_%s('
        '    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,'
        '    p_stream text, p_partitions int[], p_counts int[], p_groups int[], p_ends int[], p_events int[],'
        '    p_blocks bytea[])'
        ' RETURNS bigint[]'
        ' LANGUAGE plpgsql'
        ' SET enable_seqscan = off' -- as in append_v1
        ' SET enable_bitmapscan = off'
        ' SET enable_sort = off'
        ' SET plan_cache_mode = force_generic_plan'
        ' SET lock_timeout = ''5s'''
        ' AS %L',
        p_stream_id,
        format($template$
DECLARE
    batch record;
    bases bigint[];
    times timestamptz[];
BEGIN
    IF cardinality(p_partitions) = 1 THEN
        batch := eventsql.begin_append_v1(
            p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
            p_stream, %1$s, %2$L, p_partitions[1], p_counts[1]);
        bases := ARRAY[batch.first_offset];
        times := ARRAY[batch.published];
    ELSE
        batch := eventsql.begin_append_partitions_v1(
            p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
            p_stream, %1$s, %2$L, p_partitions, p_counts);
        bases := batch.first_offsets;
        times := batch.published;
    END IF;
    IF NOT batch.is_new THEN
        RETURN bases;
    END IF;
    IF EXISTS (
        SELECT
        FROM (SELECT unnest(p_partitions) AS partition, unnest(bases) AS base, unnest(p_counts) AS count) AS p
        WHERE p.base + p.count > coalesce((
            SELECT g.end_offset FROM eventsql.segment g
            WHERE g.stream_id = %1$s AND g.partition = p.partition AND g.first_offset <= p.base
            ORDER BY g.first_offset DESC LIMIT 1), 0))
    THEN
        SELECT c.groups, c.ends, c.events, c.blocks INTO p_groups, p_ends, p_events, p_blocks
        FROM eventsql.cut_blocks_v1(
            array_fill(%1$s, ARRAY[cardinality(p_partitions)]), p_partitions, bases, p_groups, p_ends, p_events, p_blocks) c;
    END IF;
    INSERT INTO eventsql.%3$I (partition, event_offset, events, published_at, block)
    SELECT p_partitions[g], bases[g] + e - 1, c, times[g], b
    FROM (SELECT unnest(p_groups) AS g, unnest(p_ends) AS e, unnest(p_events) AS c, unnest(p_blocks) AS b) AS x;
    RETURN bases;
END
$template$, p_stream_id, its_table, its_table || '__blocks'));
    PERFORM eventsql.apply_append_grants_v1(p_stream_id);
END $create$;

ALTER FUNCTION eventsql.create_append_function_v1 RENAME TO create_append_rows_function_v1;

-- Creates the append function of a stream for its storage, or replaces it: append_v2_<id> or append_blocks_<id>. A stream that
-- stores blocks has no append_v2_<id>: rows are appended to it by append_v1, which packs them.
CREATE FUNCTION eventsql.create_append_function_v1(p_stream_id int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_id) = 'blocks' THEN
        PERFORM eventsql.create_append_blocks_function_v1(p_stream_id);
    ELSE
        PERFORM eventsql.create_append_rows_function_v1(p_stream_id);
    END IF;
END $$;

-- As in version 17, also of a stream that stores blocks.
CREATE OR REPLACE FUNCTION eventsql.maintain_append_function_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        EXECUTE format('DROP FUNCTION IF EXISTS eventsql.append_v2_%s', OLD.stream_id);
        EXECUTE format('DROP FUNCTION IF EXISTS eventsql.append_blocks_%s', OLD.stream_id);
    ELSE
        PERFORM eventsql.create_append_function_v1(NEW.stream_id);
    END IF;
    RETURN NULL;
END $$;

ALTER FUNCTION eventsql.prepare_fetch_v1 RENAME TO prepare_fetch_rows_v1;

-- Creates the fetch function of a stream that stores blocks, or replaces it: as prepare_fetch_rows_v1, with the parameters and
-- columns of fetch_blocks_v1, which reads the unusual pages.
CREATE FUNCTION eventsql.prepare_fetch_blocks_v1(p_stream_id int) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    partitions_max CONSTANT int := 50;                 -- each page with events is compared with the names of all segments
    segments_each  CONSTANT int := 2;                  -- of each partition: that of the head, and the next one
    stream         record;
    function_name  text;
    existing       regprocedure;
    queries        text;
    body           text;
BEGIN
    SELECT s.name, s.table_name, s.partitions INTO stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF NOT FOUND OR stream.partitions > partitions_max THEN
        RETURN NULL;
    END IF;
    function_name := stream.table_name || '__fetch';
    SELECT string_agg(format(
               E'        WHEN %1$L THEN\n'
               '            RETURN QUERY\n'
               '            SELECT request.page, e.event_offset, e.events, e.published_at, e.block, e.distances, e.erased_at\n'
               '            FROM eventsql.%1$I e\n'
               '            WHERE e.event_offset >= request.from_offset AND e.event_offset <= coalesce((\n'
               '                SELECT l.event_offset FROM eventsql.%1$I l WHERE l.event_offset >= request.last_offset\n'
               '                ORDER BY l.event_offset LIMIT 1), request.end_offset)\n'
               '            ORDER BY e.event_offset;\n',
               g.table_name), '' ORDER BY p.partition, g.first_offset)
    INTO queries
    FROM eventsql.stream_partition p
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p.stream_id AND b.partition = p.partition
        ORDER BY b.next_offset DESC LIMIT 1) h
    CROSS JOIN LATERAL (
        SELECT s.table_name, s.first_offset FROM eventsql.segment s
        WHERE s.stream_id = p.stream_id AND s.partition = p.partition AND s.first_offset >= (
            SELECT c.first_offset FROM eventsql.segment c
            WHERE c.stream_id = p.stream_id AND c.partition = p.partition AND c.first_offset <= h.next_offset
            ORDER BY c.first_offset DESC LIMIT 1)
        ORDER BY s.first_offset LIMIT segments_each) g
    WHERE p.stream_id = p_stream_id;
    IF queries IS NULL THEN
        RETURN NULL;
    END IF;
    body := format($body$
DECLARE
    request record;
    rows int;
BEGIN
    IF p_stream_id <> %s OR p_stream <> %L THEN -- which fetch_blocks_v1 rejects
        RETURN QUERY
        SELECT * FROM eventsql.fetch_blocks_v1(
            p_incarnation, p_stream_id, p_stream, p_partitions, p_offsets, p_max_events, p_max_bytes);
        RETURN;
    END IF;
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    FOR request IN
        SELECT r.number::int - 1 AS page, r.partition, r.from_offset, r.from_offset + p_max_events - 1 AS last_offset,
               r.max_bytes, h.next_offset AS head, s.end_offset,
               CASE WHEN least(h.next_offset, r.from_offset + p_max_events) <= s.end_offset
                     AND 8160 * least(p_max_events, h.next_offset - r.from_offset) <= r.max_bytes
                     AND pg_relation_size((
                             SELECT c.reltoastrelid FROM pg_class c
                             WHERE c.oid = to_regclass(format('eventsql.%%I', s.table_name)))) = 0
                    THEN s.table_name END AS segment
        FROM unnest(p_partitions, p_offsets, p_max_bytes)
            WITH ORDINALITY AS r (partition, from_offset, max_bytes, number)
        CROSS JOIN LATERAL (
            SELECT b.next_offset FROM eventsql.producer_batch b
            WHERE b.stream_id = p_stream_id AND b.partition = r.partition
            ORDER BY b.next_offset DESC LIMIT 1) h
        LEFT JOIN LATERAL (
            SELECT g.table_name, g.end_offset FROM eventsql.segment g
            WHERE g.stream_id = p_stream_id AND g.partition = r.partition AND g.first_offset <= r.from_offset
            ORDER BY g.first_offset DESC LIMIT 1) s ON true
        WHERE h.next_offset > r.from_offset
    LOOP
        CASE request.segment
%s        ELSE
            RETURN QUERY
            SELECT request.page, f.event_offset, f.events, f.published_at, f.block, f.distances, f.erased_at
            FROM eventsql.fetch_blocks_v1(
                p_incarnation, p_stream_id, p_stream, ARRAY[request.partition], ARRAY[request.from_offset], p_max_events,
                ARRAY[request.max_bytes]) f;
            CONTINUE;
        END CASE;
        GET DIAGNOSTICS rows = ROW_COUNT;
        IF rows = 0 OR (request.last_offset >= request.head AND request.end_offset >= request.head) THEN
            page := request.page; -- no block: the end of the range
            event_offset := least(request.head, request.end_offset);
            RETURN NEXT;
        END IF;
    END LOOP;
END $body$, p_stream_id, stream.name, queries);

    existing := to_regprocedure(format('eventsql.%I(text, int, text, int[], bigint[], int, bigint[])', function_name));
    IF EXISTS (SELECT FROM pg_proc p WHERE p.oid = existing AND p.prosrc = body) THEN
        RETURN function_name;
    END IF;
    -- "ESFE": two sessions that replace a function at the same time would fail.
    IF NOT pg_try_advisory_xact_lock(1163085381, p_stream_id) THEN
        RETURN NULL;
    END IF;
    -- Waits for a deletion of the stream, which would not drop this function.
    PERFORM FROM eventsql.stream s WHERE s.stream_id = p_stream_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    EXECUTE format($create$
CREATE OR REPLACE FUNCTION eventsql.%I(
    p_incarnation text, p_stream_id int, p_stream text, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (
    page int, event_offset bigint, events int, published_at timestamptz, block bytea, distances int[],
    erased_at timestamptz[])
LANGUAGE plpgsql STABLE -- as fetch_blocks_v1
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
AS %L$create$, function_name, body);
    RETURN function_name;
END $$;

-- Creates the fetch function of a stream for its storage, or replaces it. See prepare_fetch_rows_v1.
CREATE FUNCTION eventsql.prepare_fetch_v1(p_stream_id int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT s.storage FROM eventsql.stream s WHERE s.stream_id = p_stream_id) = 'blocks' THEN
        RETURN eventsql.prepare_fetch_blocks_v1(p_stream_id);
    END IF;
    RETURN eventsql.prepare_fetch_rows_v1(p_stream_id);
END $$;

-- As in version 17, also for append_blocks_<id>.
CREATE OR REPLACE FUNCTION eventsql.apply_append_grants_v1(p_stream_id int DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    model record;
    own   record;
    given record;
BEGIN
    SELECT p.proowner, p.prosecdef, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl, p.pronamespace INTO STRICT model
    FROM pg_proc p WHERE p.oid = 'eventsql.append_v1'::regproc;
    FOR own IN
        SELECT p.oid::regprocedure AS name, p.proowner, p.prosecdef, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
        FROM pg_proc p
        WHERE p.pronamespace = model.pronamespace AND p.proname ~ '^append_(v2|blocks)_[0-9]+$'
          AND (p_stream_id IS NULL OR p.proname IN ('append_v2_' || p_stream_id, 'append_blocks_' || p_stream_id))
    LOOP
        IF own.proowner <> model.proowner THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %s', own.name, model.proowner::regrole);
        END IF;
        IF model.prosecdef THEN
            EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', own.name);
        ELSIF own.prosecdef THEN
            EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER RESET search_path', own.name);
        END IF;
        CONTINUE WHEN own.acl = model.acl;
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', own.name);
        FOR given IN SELECT a.grantee::regrole AS role FROM aclexplode(own.acl) a WHERE a.grantee <> 0 LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', own.name, given.role);
        END LOOP;
        FOR given IN
            SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role, a.is_grantable
            FROM aclexplode(model.acl) a
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', own.name, given.role,
                CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
        END LOOP;
    END LOOP;
END $$;

REVOKE ALL ON FUNCTION
    eventsql.create_events_table_v1, eventsql.create_stream_v3,
    eventsql.create_append_function_v1, eventsql.create_append_blocks_function_v1, eventsql.prepare_fetch_v1,
    eventsql.prepare_fetch_blocks_v1 FROM PUBLIC;

-- CREATE OR REPLACE keeps the privileges of append_v1 and append_transferred_v2, but not the rights that they run with. Where roles.sql was applied,
-- which revokes it from PUBLIC, the roles that publish get append_blocks_v1, too.
DO $$
DECLARE
    grantee text;
BEGIN
    IF EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        RETURN;
    END IF;
    ALTER FUNCTION eventsql.append_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    ALTER FUNCTION eventsql.append_transferred_v2 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    ALTER FUNCTION eventsql.append_blocks_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    REVOKE ALL ON FUNCTION eventsql.append_blocks_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.append_blocks_v1 TO %s', grantee);
    END LOOP;
END $$;

-- The roles that could prepare fetches still can.
DO $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.prepare_fetch_rows_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.prepare_fetch_v1 TO %s', grantee);
        EXECUTE format('REVOKE ALL ON FUNCTION eventsql.prepare_fetch_rows_v1 FROM %s', grantee);
    END LOOP;
END $$;
