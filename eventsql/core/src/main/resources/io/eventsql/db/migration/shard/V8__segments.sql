-- EventSQL: the catalog of segments. No offset arithmetic names a table: segments differ in size and can end early.
--
-- The functions of version 7 keep their signatures, for processes that run the previous release while this one is
-- deployed. Locks each stream's table exclusively for a moment, with those of its partitions and segments, so the server
-- needs an entry in its lock table for each of them (max_locks_per_transaction).

INSERT INTO eventsql.schema_version (version, description) VALUES (8, 'segments');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- Returns the name of the table that holds a stream's events. A name of lower-case letters, digits and single underscores
-- is part of it as it is. Of any other name, only what needs no quotes remains, and a hash of the name keeps it unique.
CREATE FUNCTION eventsql.stream_table_name_v1(p_stream text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN 'events_' || CASE
    WHEN p_stream ~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' AND octet_length(p_stream) <= 36 THEN p_stream
    ELSE concat_ws('_',
        nullif(btrim(left(regexp_replace(lower(p_stream COLLATE "C"), '[^a-z0-9]+', '_', 'g'), 27), '_'), ''),
        left(encode(sha256(convert_to(p_stream, 'UTF8')), 'hex'), 8))
END;

-- segment_size is the largest size of a new segment.
ALTER TABLE eventsql.stream ADD COLUMN table_name text; -- of its events, in this schema
UPDATE eventsql.stream SET table_name = 'events_' || name;
ALTER TABLE eventsql.stream
    ALTER COLUMN table_name SET NOT NULL,
    ADD CONSTRAINT stream_table_name_unique UNIQUE (table_name);

-- Events without a value, and the time at which the value of an event was erased. No table is rewritten.
DO $$
DECLARE
    events regclass;
BEGIN
    FOR events IN
        SELECT to_regclass(format('eventsql.%I', s.table_name)) FROM eventsql.stream s ORDER BY s.stream_id
    LOOP
        IF events IS NOT NULL THEN
            EXECUTE format(
                'ALTER TABLE %s ALTER COLUMN value DROP NOT NULL, ADD COLUMN erased_at timestamptz', events);
        END IF;
    END LOOP;
END $$;
ALTER TABLE eventsql.parked_event ALTER COLUMN value DROP NOT NULL, ADD COLUMN erased_at timestamptz;

-- The segments of each partition, from the log's start to beyond its head. A row is inserted with its table, and deleted
-- when that is dropped.
--
-- No foreign key to stream_partition: its check would lock the row that every append locks first.
CREATE TABLE eventsql.segment (
    stream_id         int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition         int         NOT NULL,
    first_offset      bigint      NOT NULL,
    end_offset        bigint      NOT NULL,            -- the offset after the last one it can hold
    number            bigint      NOT NULL,            -- rises from segment to segment of a partition; never reused
    table_name        text        NOT NULL CONSTRAINT segment_table_name_unique UNIQUE, -- in this schema
    -- open: the head is in it or below it; closed: the head has passed its end, and that is recorded; expired: the log
    -- starts above it; empty: expired, and its table is empty, to be dropped
    state             text        NOT NULL DEFAULT 'open'
                      CONSTRAINT segment_state_known CHECK (state IN ('open', 'closed', 'expired', 'empty')),
    last_published_at timestamptz,                     -- of its last event; NULL: not closed
    bytes             bigint,                          -- of table, index and large values; NULL: not closed
    compacted_through bigint,                          -- below it, offsets may be missing; NULL: none are
    removed_events    bigint      NOT NULL DEFAULT 0,  -- by compaction
    rewritten_events  bigint      NOT NULL DEFAULT 0,  -- those of them whose space was returned
    expired_at        timestamptz,
    CONSTRAINT segment_offsets_ordered CHECK (first_offset < end_offset),
    PRIMARY KEY (stream_id, partition, first_offset)
) WITH (vacuum_truncate = false);
-- Few rows: the segments that the heads have not passed, as far as that is recorded, and those to be emptied or dropped.
CREATE INDEX segment_open ON eventsql.segment (stream_id, partition, first_offset) WHERE state = 'open';
CREATE INDEX segment_expired ON eventsql.segment (expired_at) WHERE state IN ('expired', 'empty');

-- Returns the tables that are attached to a partition's, with the offsets they accept, in no order.
CREATE FUNCTION eventsql.attached_segments_v1(p_stream_id int, p_partition int)
RETURNS TABLE (table_name text, first_offset bigint, end_offset bigint)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
    SELECT c.relname::text, b[1]::bigint, b[2]::bigint
    FROM eventsql.stream s
    JOIN pg_inherits i ON i.inhparent = to_regclass(format('eventsql.%I', s.table_name || '__p' || p_partition))
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') AS b
    WHERE s.stream_id = p_stream_id AND NOT i.inhdetachpending
$$;

-- In a later statement than the change of the tables, which has waited for segments that are being added. Those below the
-- log's start are what an interrupted clearing has left.
INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name, state, expired_at)
SELECT p.stream_id, p.partition, a.first_offset, a.end_offset, substring(a.table_name FROM '_s([0-9]+)$')::bigint,
       a.table_name,
       CASE WHEN a.end_offset <= p.log_start THEN 'expired' ELSE 'open' END,
       CASE WHEN a.end_offset <= p.log_start THEN clock_timestamp() END
FROM eventsql.stream_partition p
CROSS JOIN LATERAL eventsql.attached_segments_v1(p.stream_id, p.partition) a;

-- Those that it has detached, but not dropped.
INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name, state, expired_at)
SELECT s.stream_id, p.partition, n.number * s.segment_size, (n.number + 1) * s.segment_size, n.number, c.relname, 'expired',
       clock_timestamp()
FROM pg_class c
CROSS JOIN LATERAL regexp_match(c.relname, '^(.*)__p([0-9]+)_s([0-9]+)$') AS m
CROSS JOIN LATERAL (SELECT m[3]::bigint AS number) n
JOIN eventsql.stream s ON s.table_name = m[1]
JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = m[2]::int
WHERE c.relnamespace = (SELECT r.relnamespace FROM pg_class r WHERE r.oid = 'eventsql.stream'::regclass)
  AND c.relkind = 'r' AND (n.number + 1) * s.segment_size <= p.log_start
  AND NOT EXISTS (SELECT FROM eventsql.segment g WHERE g.table_name = c.relname)
ON CONFLICT DO NOTHING;

-- Makes the catalog of a partition agree with its tables: deletes the rows of segments that were dropped or detached by
-- hand, and inserts those of tables that a process of the previous release has attached while the schema was migrated.
CREATE FUNCTION eventsql.reconcile_segments_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
BEGIN
    DELETE FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition
      AND g.table_name NOT IN (
          SELECT a.table_name FROM eventsql.attached_segments_v1(p_stream_id, p_partition) a)
      AND (g.state IN ('open', 'closed') OR to_regclass(format('eventsql.%I', g.table_name)) IS NULL);
    INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name)
    SELECT p_stream_id, p_partition, a.first_offset, a.end_offset, coalesce(
               substring(a.table_name FROM '_[sv]([0-9]+)$')::bigint,
               (SELECT max(g.number) + 1 FROM eventsql.segment g
                WHERE g.stream_id = p_stream_id AND g.partition = p_partition),
               0),
           a.table_name
    FROM eventsql.attached_segments_v1(p_stream_id, p_partition) a
    WHERE NOT EXISTS (SELECT FROM eventsql.segment g WHERE g.table_name = a.table_name)
    ON CONFLICT (stream_id, partition, first_offset) DO NOTHING;
END $$;

-- Returns the size that the next segment of a partition should have.
CREATE FUNCTION eventsql.next_segment_size_v1(p_stream_id int, p_partition int) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.segment_size FROM eventsql.stream s WHERE s.stream_id = p_stream_id
$$;

-- Adds a segment to a partition that begins at p_first_offset, which no segment covers, and the table of the partition if
-- that is missing. The caller holds the advisory lock of the partition.
--
-- A table is created, then attached: that locks the parent only against other such changes (SHARE UPDATE EXCLUSIVE),
-- while CREATE TABLE … PARTITION OF would lock out publishers and readers.
--
-- A segment that holds exactly the offsets from n * segment_size up to the next multiple has a table named _s<n>, because
-- the previous release looks for it there; all others have names that it does not know.
CREATE FUNCTION eventsql.create_segment_v1(p_stream_id int, p_partition int, p_first_offset bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stream       record;
    size         bigint;
    end_offset   bigint;
    number       bigint;
    events       text;
    of_partition text;
    name         text;
BEGIN
    -- Waits for a deletion of the stream, which would not wait for this table.
    SELECT s.table_name, s.segment_size, s.compaction INTO stream
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
            ' PARTITION BY RANGE (event_offset)', of_partition, events);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN value SET STATISTICS 0', of_partition);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)', events, of_partition, p_partition);
        PERFORM eventsql.copy_grants_v1(events::regclass, of_partition::regclass);
    END IF;
    -- The primary key is the only index, unless the stream is compacted: offsets are looked up, and read in their order.
    -- INCLUDING CONSTRAINTS, because a table without the constraints that a user has added to the stream's table could not
    -- be attached.
    -- Autovacuum: events are only inserted, and dropped with their segment, and no plan of the library needs
    -- statistics; by default autovacuum would read a growing segment again and again (decision 10).
    EXECUTE format(
        'CREATE TABLE eventsql.%I ('
        '  LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE, PRIMARY KEY (event_offset)'
        ') WITH ('
        '  autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,'
        '  autovacuum_analyze_threshold = 500000, autovacuum_analyze_scale_factor = 0.5,'
        '  vacuum_truncate = false, toast.vacuum_truncate = false)', name, of_partition);
    -- No samples of values in pg_statistic, where no erasure would find them.
    EXECUTE format('ALTER TABLE eventsql.%I ALTER COLUMN value SET STATISTICS 0', name);
    IF stream.compaction THEN
        EXECUTE format(
            'CREATE INDEX ON eventsql.%I (hashtextextended(key, 0), event_offset) WHERE key IS NOT NULL', name);
    END IF;
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION eventsql.%I FOR VALUES FROM (%s) TO (%s)',
        of_partition, name, p_first_offset, end_offset);
    -- A fetch names the segment, so the grants of the stream's table do not suffice.
    PERFORM eventsql.copy_grants_v1(events::regclass, format('eventsql.%I', name)::regclass);
    INSERT INTO eventsql.segment (stream_id, partition, first_offset, end_offset, number, table_name)
    VALUES (p_stream_id, p_partition, p_first_offset, end_offset, number, name);
END $$;

-- Adds segments that a partition needs for its next events: room for p_events events, and a spare segment above that. At
-- most ten, because each takes places in the server's lock table: the caller repeats the call in another transaction while
-- ten were added. Returns how many were added, and the first offset of the spare segment.
--
-- Errors: ES004 the partition does not exist; 42622 the name of a table would be too long.
CREATE FUNCTION eventsql.add_segments_v1(
    p_stream_id int, p_partition int, p_events bigint, OUT added int, OUT spare_offset bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    added_max    CONSTANT int := 10;
    of_partition text;
    head         bigint;
    next         bigint;
    segment      record;
    early_end    record;
BEGIN
    SELECT format('eventsql.%I', s.table_name || '__p' || p.partition) INTO of_partition
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.stream_id = p_stream_id AND p.partition = p_partition;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream_id USING ERRCODE = 'ES004';
    END IF;
    -- "ESEG" keeps two processes from adding the same segment. New statements see what was committed before the lock
    -- was granted.
    PERFORM pg_advisory_xact_lock(1163085127, hashtext(of_partition));
    SELECT b.next_offset INTO STRICT head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    IF (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = to_regclass(of_partition))
        <> (SELECT count(*) FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = p_partition)
    THEN
        PERFORM eventsql.reconcile_segments_v1(p_stream_id, p_partition);
    END IF;

    added := 0;
    next := head;
    LOOP
        SELECT g.first_offset, g.end_offset, g.table_name INTO segment
        FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset <= next
        ORDER BY g.first_offset DESC LIMIT 1;
        IF segment.end_offset > next THEN
            spare_offset := segment.first_offset;
            -- A constraint that was to end the segment before events that have to go into it.
            SELECT c.conname, substring(pg_get_constraintdef(c.oid) FROM '< ''?([0-9]+)')::bigint AS at INTO early_end
            FROM pg_constraint c
            WHERE c.conrelid = format('eventsql.%I', segment.table_name)::regclass AND c.conname = 'eventsql_end';
            IF early_end.at < least(segment.end_offset, head + p_events) THEN
                EXECUTE format('ALTER TABLE eventsql.%I DROP CONSTRAINT eventsql_end', segment.table_name);
                added := added + 1; -- there is more room
            END IF;
            EXIT WHEN spare_offset > head + p_events;
            next := segment.end_offset;
        ELSE
            EXIT WHEN added = added_max;
            PERFORM eventsql.create_segment_v1(p_stream_id, p_partition, next);
            added := added + 1;
        END IF;
    END LOOP;
END $$;

-- Adds segments that a publisher needs: add_segments_v1 with the rights of the owner, in a transaction of its own.
--
-- Errors: ES003 the transaction is not READ COMMITTED; ES004 the partition does not exist; ES011 the database has another
-- incarnation than p_incarnation; 22023 no publisher needs that much room; 42622 the name of a table would be too long.
CREATE FUNCTION eventsql.ensure_segments_v1(
    p_incarnation text, p_stream_id int, p_partition int, p_events bigint, OUT added int, OUT spare_offset bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s' -- short, because requests for other locks on the table queue behind a waiting one
AS $$
DECLARE
    events_max CONSTANT bigint := 200000; -- two batches of the largest size that a publisher can have
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'adding a segment requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    ELSIF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN -- the id may be that of another stream
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    ELSIF p_events NOT BETWEEN 0 AND events_max THEN
        RAISE EXCEPTION 'no publisher needs room for % events; the limit is %', p_events, events_max
            USING ERRCODE = '22023';
    END IF;
    SELECT s.added, s.spare_offset INTO added, spare_offset
    FROM eventsql.add_segments_v1(p_stream_id, p_partition, p_events) s;
END $$;

-- The previous release calls it, with the number of a segment of the stream's segment size: adds what a partition needs
-- for its next events. Returns whether a segment was added.
--
-- Errors: those of ensure_segments_v1.
CREATE OR REPLACE FUNCTION eventsql.add_segment_v1(
    p_incarnation text, p_stream_id int, p_partition int, p_segment bigint)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    ahead_events_max   CONSTANT bigint := 200000;
    ahead_segments_max CONSTANT bigint := 3;
    size               bigint;
    head               bigint;
BEGIN
    SELECT s.segment_size INTO size FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    SELECT b.next_offset INTO head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    IF p_segment < 0 OR p_segment > (head + ahead_events_max) / size + ahead_segments_max THEN
        RAISE EXCEPTION 'segment % is too far from the head % of partition % of stream %',
            p_segment, head, p_partition, p_stream_id USING ERRCODE = '22023';
    END IF;
    RETURN (
        SELECT s.added > 0
        FROM eventsql.ensure_segments_v1(
            p_incarnation, p_stream_id, p_partition,
            least(greatest(0, coalesce((p_segment - 1) * size - head, 0)), ahead_events_max)) s);
END $$;

-- Records the segments of a partition that the head has passed as closed, with their last event's time and their size.
CREATE FUNCTION eventsql.close_segments_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    segment   record;
    published timestamptz;
BEGIN
    FOR segment IN
        SELECT g.first_offset, g.table_name
        FROM eventsql.segment g
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.state = 'open'
          AND g.end_offset <= (
              SELECT b.next_offset FROM eventsql.producer_batch b
              WHERE b.stream_id = p_stream_id AND b.partition = p_partition
              ORDER BY b.next_offset DESC LIMIT 1)
        ORDER BY g.first_offset
    LOOP
        CONTINUE WHEN to_regclass(format('eventsql.%I', segment.table_name)) IS NULL; -- dropped by hand
        EXECUTE format('SELECT published_at FROM eventsql.%I ORDER BY event_offset DESC LIMIT 1', segment.table_name)
        INTO published;
        UPDATE eventsql.segment g
        SET state = 'closed', last_published_at = coalesce(published, clock_timestamp()),
            bytes = pg_total_relation_size(format('eventsql.%I', g.table_name)::regclass)
        WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset = segment.first_offset
          AND g.state = 'open';
    END LOOP;
END $$;

-- Returns the segment that an offset of a partition is in. Without one in the catalog, that of a table which a process of
-- the previous release has attached while the schema was migrated, until reconcile_segments_v1 inserts it.
CREATE FUNCTION eventsql.segment_at_v1(
    p_stream_id int, p_partition int, p_offset bigint,
    OUT table_name text, OUT first_offset bigint, OUT end_offset bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
BEGIN
    SELECT g.table_name, g.first_offset, g.end_offset INTO table_name, first_offset, end_offset
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset <= p_offset
    ORDER BY g.first_offset DESC LIMIT 1;
    IF end_offset > p_offset THEN
        RETURN;
    END IF;
    SELECT a.table_name, a.first_offset, a.end_offset INTO table_name, first_offset, end_offset
    FROM eventsql.attached_segments_v1(p_stream_id, p_partition) a
    WHERE p_offset >= a.first_offset AND p_offset < a.end_offset;
END $$;

-- As in version 2, but the stream's row names the table.
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
        SELECT p.map_version, s.name, s.table_name INTO stored_map, stored_stream, stored_table
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

-- Reads a page of each of several partitions of one stream in one round trip.
--
-- p_partitions, p_offsets, p_max_bytes: one element for each page: the partition, its first offset, and its size. A page
-- has at most p_max_events events and ends with the event that brings its values, keys and headers to p_max_bytes
-- bytes. It continues in the next segment, but may end there before it is full. Rows are returned page by page, in the
-- order of the offsets. Of an event that was erased, the number of the page is negative: -1 for page 0, -2 for page 1, and
-- so on. A further column would make a page of many events take a quarter more time.
--
-- A page covers the range from its first offset to the offset after its last event; it may be continued there. If it ends
-- otherwise, its last row is no event: it has no published_at, and its event_offset is the end of the range. That is the
-- head, or, without any event, the end of the range without events. No row is returned if the head does not exceed the
-- first offset. An offset of the range without an event lies below the log's start or what was compacted, or its event is
-- missing.
--
-- The head and the segment are read first, by cached plans over primary keys: fetching from a partition without new events
-- costs almost nothing. Each segment is named, so the cost does not depend on the number of segments, and its query is
-- planned when it is read: a plan made while a segment was small would be kept when it is large. The settings leave only a
-- scan of the primary key in its order, also on tables that were never analyzed. Bytes are counted row by row only for a
-- page that may be too large, because counting costs time: rows are stored uncompressed, and one of more than 2,000 bytes
-- makes the TOAST table grow.
--
-- Errors: ES011 the database has another incarnation than p_incarnation; ES012 p_stream_id belongs to another stream.
CREATE FUNCTION eventsql.fetch_v2(
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

-- The previous release calls it. As in version 2, but p_segment_size has no meaning any more, and an event without a value
-- has an empty one, because a row without a value is the end of a range.
CREATE OR REPLACE FUNCTION eventsql.fetch_v1(
    p_incarnation text, p_stream_id int, p_stream text, p_segment_size bigint, p_partitions int[], p_offsets bigint[],
    p_max_events int, p_max_bytes bigint[])
RETURNS TABLE (page int, event_offset bigint, key text, value bytea, headers json, published_at timestamptz)
LANGUAGE sql STABLE
SET jit = off
AS $$
    SELECT f.page, f.event_offset, f.key,
           CASE WHEN f.published_at IS NOT NULL THEN coalesce(f.value, '') END,
           f.headers, f.published_at
    FROM eventsql.fetch_v2(
        p_incarnation, p_stream_id, p_stream, p_partitions, p_offsets, p_max_events, p_max_bytes) f
$$;

-- Returns the first offset of a partition whose event was published at p_time or later; the head if there is none. A
-- binary search, because published_at never runs backwards within a partition. Where the middle is missing from the
-- log, the next event that exists takes its place.
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
    low       bigint;
    high      bigint;
    middle    bigint;
    result    bigint;
    probed    bigint;
    found     bigint;
    published timestamptz;
    segment   record;
BEGIN
    SELECT s.stream_id, h.log_start, h.next_offset INTO STRICT id, low, high
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
                    'SELECT event_offset, published_at FROM eventsql.%I WHERE event_offset >= $1 AND event_offset < $2'
                    ' ORDER BY event_offset LIMIT 1', segment.table_name)
                INTO found, published USING probed, high;
            END IF;
            probed := coalesce(segment.end_offset, (
                SELECT min(g.first_offset) FROM eventsql.segment g
                WHERE g.stream_id = id AND g.partition = p_partition AND g.first_offset > probed), high);
        END LOOP;
        IF found IS NULL THEN
            high := middle;
        ELSIF published < p_time THEN
            low := found + 1;
        ELSE
            result := found;
            high := middle;
        END IF;
    END LOOP;
    RETURN result;
END $$;

-- As in version 4, but the catalog names the segment: p_segment_size has no meaning any more.
CREATE OR REPLACE FUNCTION eventsql.consumer_status_v1(
    p_consumer_id int, p_stream text, p_segment_size bigint, p_parked_events_max int)
RETURNS TABLE (
    partition int, state text, error text, log_start bigint, head bigint, next_offset bigint, lag_ms bigint,
    committed_at timestamptz, epoch bigint, member text, expires_at timestamptz, parked_keys int, parked_events int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    published timestamptz;
    segment   text;
BEGIN
    FOR partition, state, error, log_start, next_offset, committed_at, epoch, member, expires_at, head IN
        -- The offset is read before the head: in the other order it could be beyond the head.
        SELECT p.partition, p.state, p.error, s.log_start, o.next_offset, o.committed_at, o.epoch,
               coalesce(m.name, p.member_id::text), p.expires_at, NULL
        FROM eventsql.consumer c
        JOIN eventsql.consumer_partition p USING (consumer_id)
        JOIN eventsql.stream_partition s ON s.stream_id = c.stream_id AND s.partition = p.partition
        LEFT JOIN eventsql.consumer_member m ON m.consumer_id = p.consumer_id AND m.member_id = p.member_id
        CROSS JOIN LATERAL (
            SELECT n.* FROM eventsql.consumer_offset n
            WHERE n.consumer_id = p.consumer_id AND n.partition = p.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE c.consumer_id = p_consumer_id
        ORDER BY p.partition
    LOOP
        SELECT b.next_offset INTO head
        FROM eventsql.consumer c
        JOIN eventsql.producer_batch b ON b.stream_id = c.stream_id AND b.partition = consumer_status_v1.partition
        WHERE c.consumer_id = p_consumer_id
        ORDER BY b.next_offset DESC LIMIT 1;

        lag_ms := 0;
        segment := NULL;
        IF next_offset < head AND head > log_start THEN
            SELECT to_regclass('eventsql.' || quote_ident(g.table_name))::text INTO segment
            FROM eventsql.consumer c
            CROSS JOIN LATERAL eventsql.segment_at_v1(
                c.stream_id, consumer_status_v1.partition, greatest(next_offset, log_start)) g
            WHERE c.consumer_id = p_consumer_id;
        END IF;
        IF segment IS NOT NULL THEN
            -- The next event that exists: events may be missing from the log.
            EXECUTE format('SELECT published_at FROM %s WHERE event_offset >= $1 ORDER BY event_offset LIMIT 1', segment)
            INTO published USING greatest(next_offset, log_start);
            lag_ms := coalesce(greatest(0, extract(epoch FROM clock_timestamp() - published) * 1000)::bigint, 0);
        END IF;

        SELECT count(*) INTO parked_keys
        FROM eventsql.parked_key k
        WHERE k.consumer_id = p_consumer_id AND k.partition = consumer_status_v1.partition;
        SELECT count(*) INTO parked_events
        FROM (
            SELECT FROM eventsql.parked_event e
            WHERE e.consumer_id = p_consumer_id AND e.partition = consumer_status_v1.partition
            LIMIT p_parked_events_max) e;
        RETURN NEXT;
    END LOOP;
END $$;

-- Copies the grants of a stream's table to the tables of its partitions and segments. To be called after a GRANT or
-- REVOKE on the table of a stream that has segments already: readers name segments directly.
CREATE OR REPLACE FUNCTION eventsql.apply_stream_grants_v1(p_stream text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    events regclass;
BEGIN
    SELECT format('eventsql.%I', s.table_name)::regclass INTO STRICT events FROM eventsql.stream s WHERE s.name = p_stream;
    PERFORM eventsql.copy_grants_v1(events, t.relid)
    FROM pg_partition_tree(events) t
    WHERE t.relid <> events;
END $$;

-- Creates a stream with its partitions' rows and its table, unless a stream of that name exists. The tables of the
-- partitions follow (create_partitions_v1): one transaction that creates thousands of tables would exhaust the server's
-- lock table.
CREATE OR REPLACE FUNCTION eventsql.create_stream_v1(
    p_name text, p_partitions int, p_segment_size bigint, p_json boolean, p_map_version int)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    new_id    int;
    its_table text := eventsql.stream_table_name_v1(p_name);
    events    text := format('eventsql.%I', its_table);
BEGIN
    IF p_name IS NULL OR p_name !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' OR octet_length(p_name) > 100 THEN
        RAISE EXCEPTION 'invalid name of a stream: %', p_name USING ERRCODE = '22023';
    ELSIF p_partitions > 1000 THEN
        RAISE EXCEPTION 'a stream has at most 1000 partitions, not %', p_partitions USING ERRCODE = '22023';
    END IF;
    INSERT INTO eventsql.stream (name, table_name, partitions, segment_size, json)
    VALUES (p_name, its_table, p_partitions, p_segment_size, p_json)
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
    IF p_json THEN
        EXECUTE format(
            'CREATE VIEW eventsql.%I AS'
            ' SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers, published_at'
            ' FROM %s', its_table || '__json', events);
    END IF;
END $$;

-- Creates the tables of up to p_max partitions of a stream that lack them, each with two segments. Returns how many
-- partitions still lack them. If interrupted between two calls, the stream works: an append adds what it misses.
CREATE OR REPLACE FUNCTION eventsql.create_partitions_v1(p_stream_id int, p_max int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    missing int[];
BEGIN
    -- "ESST": processes that create the same stream take turns.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_stream_id));
    missing := ARRAY(
        SELECT p.partition
        FROM eventsql.stream_partition p
        JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_id
          AND to_regclass(format('eventsql.%I', s.table_name || '__p' || p.partition)) IS NULL
        ORDER BY p.partition);
    FOR i IN 1 .. least(p_max, cardinality(missing)) LOOP
        PERFORM eventsql.add_segments_v1(p_stream_id, missing[i], 0);
    END LOOP;
    RETURN greatest(0, cardinality(missing) - p_max);
END $$;

-- Moves the start of a partition's log to its head, and empties the segment that the head is in; the segments below it
-- have expired. Locks the row that
-- every append locks first, so no append of the partition is in progress, and appends wait until the commit. Needs the
-- rights of the owner.
--
-- Errors: ES003 the transaction is not READ COMMITTED: the head would be read as of before the lock, and events appended
-- while waiting for it would be deleted.
CREATE OR REPLACE FUNCTION eventsql.start_at_head_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    former_start bigint;
    segment      text;
    head         bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'clearing requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    SELECT p.log_start INTO STRICT former_start
    FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition
    FOR UPDATE;
    -- A new statement sees what was appended before the lock was granted.
    SELECT b.next_offset INTO STRICT head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    IF head = former_start THEN
        RETURN;
    END IF;
    UPDATE eventsql.stream_partition p SET log_start = head
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition;
    UPDATE eventsql.segment g SET state = 'expired', expired_at = clock_timestamp()
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.end_offset <= head
      AND g.state IN ('open', 'closed');
    SELECT g.table_name INTO segment
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.first_offset < head AND g.end_offset > head
    ORDER BY g.first_offset DESC LIMIT 1;
    IF to_regclass('eventsql.' || quote_ident(segment)) IS NOT NULL THEN
        EXECUTE format('TRUNCATE eventsql.%I', segment);
    END IF;
END $$;

-- CREATE OR REPLACE keeps the privileges of append_v1, but not the rights that it runs with. Where roles.sql was applied,
-- which revokes it from PUBLIC, publishers continue, and the roles that could add segments still can.
DO $$
DECLARE
    grantee text;
BEGIN
    REVOKE ALL ON FUNCTION eventsql.ensure_segments_v1 FROM PUBLIC;
    IF NOT EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        ALTER FUNCTION eventsql.append_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    END IF;
    FOR grantee IN
        SELECT a.grantee::regrole::text
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.add_segment_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.ensure_segments_v1 TO %s', grantee);
    END LOOP;
END $$;
