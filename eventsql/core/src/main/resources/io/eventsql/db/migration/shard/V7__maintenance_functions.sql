-- EventSQL: functions that create and clear the tables of streams, and delete what is no longer needed.
--
-- Those that are SECURITY DEFINER run with the rights of their owner, who owns the tables of all streams: a publisher
-- needs no right to create tables. They take ids and numbers, read every name from the catalog, and quote it. Their
-- search_path is fixed and ends with pg_temp, so that no object of the caller takes the place of another. Only their
-- owner may execute them; roles.sql grants that to others.

INSERT INTO eventsql.schema_version (version, description) VALUES (7, 'maintenance functions');

-- Gives a table exactly the grants of another one, apart from those of their owner. Needs the rights of the owner.
CREATE FUNCTION eventsql.copy_grants_v1(p_from regclass, p_to regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    acl record;
BEGIN
    FOR acl IN -- default privileges
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = p_to AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON TABLE %s FROM %s', p_to, acl.grantee);
    END LOOP;
    FOR acl IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee,
               string_agg(DISTINCT a.privilege_type, ', ') AS privileges,
               a.is_grantable
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = p_from AND a.grantee <> c.relowner
        GROUP BY a.grantee, a.is_grantable
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', acl.privileges, p_to, acl.grantee)
            || CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
    END LOOP;
END $$;

-- Copies the grants of a stream's table to the tables of its partitions and segments. To be called after a GRANT or
-- REVOKE on the table of a stream that has segments already: readers name segments directly.
CREATE FUNCTION eventsql.apply_stream_grants_v1(p_stream text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    events regclass := format('eventsql.%I', 'events_' || p_stream)::regclass;
BEGIN
    PERFORM eventsql.copy_grants_v1(events, t.relid)
    FROM pg_partition_tree(events) t
    WHERE t.relid <> events;
END $$;

-- Creates a stream with its partitions' rows and its table, unless a stream of that name exists. The tables of the
-- partitions follow (create_partitions_v1): one transaction that creates thousands of tables would exhaust the server's
-- lock table.
CREATE FUNCTION eventsql.create_stream_v1(
    p_name text, p_partitions int, p_segment_size bigint, p_json boolean, p_map_version int)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    new_id int;
    events text := format('eventsql.%I', 'events_' || p_name);
BEGIN
    IF p_name !~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' OR octet_length(p_name) > 36 THEN
        RAISE EXCEPTION 'invalid name of a stream: %', p_name USING ERRCODE = '22023';
    ELSIF p_partitions > 1000 THEN
        RAISE EXCEPTION 'a stream has at most 1000 partitions, not %', p_partitions USING ERRCODE = '22023';
    END IF;
    INSERT INTO eventsql.stream (name, partitions, segment_size, json)
    VALUES (p_name, p_partitions, p_segment_size, p_json)
    ON CONFLICT (name) DO NOTHING
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
        '  value        bytea       NOT NULL,'
        '  headers      json,'
        '  published_at timestamptz NOT NULL'
        ') PARTITION BY LIST (partition)', events);
    -- Partitions and segments inherit it. A clause of CREATE TABLE only since PostgreSQL 16.
    -- Uncompressed, so that fetch_v1 can bound the size of rows by that of the TOAST table.
    EXECUTE format(
        'ALTER TABLE %s ALTER COLUMN key SET STORAGE EXTERNAL, ALTER COLUMN value SET STORAGE EXTERNAL,'
        ' ALTER COLUMN headers SET STORAGE EXTERNAL', events);
    IF p_json THEN
        EXECUTE format(
            'CREATE VIEW eventsql.%I AS'
            ' SELECT partition, event_offset, key, eventsql.json_or_null(value) AS value, headers, published_at'
            ' FROM %s', 'events_' || p_name || '__json', events);
    END IF;
END $$;

-- Adds a segment to a partition, and the table of the partition if that is missing, unless the segment exists or lies
-- below the log's start: a caller that knows an older head may request one that clearing has just detached or dropped.
-- Returns whether it was added.
--
-- A table is created, then attached: that locks the parent only against other such changes (SHARE UPDATE EXCLUSIVE),
-- while CREATE TABLE … PARTITION OF would lock out publishers and readers.
--
-- Errors: ES003 the transaction is not READ COMMITTED; ES004 the partition does not exist; ES011 the database has another
-- incarnation than p_incarnation; 22023 the segment is further ahead of the head than any publisher needs; 42622 the name
-- of its table would be too long.
CREATE FUNCTION eventsql.add_segment_v1(p_incarnation text, p_stream_id int, p_partition int, p_segment bigint)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s' -- short, because requests for other locks on the table queue behind a waiting one
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    -- Two batches of the largest size that a publisher can have, and the next segments.
    ahead_events_max   CONSTANT bigint := 200000;
    ahead_segments_max CONSTANT bigint := 3;

    stream_name   text;
    size          bigint;
    current_start bigint;
    head          bigint;
    events        text;
    of_partition  text;
    of_segment    text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'adding a segment requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    ELSIF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN -- the id may be that of another stream
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT s.name, s.segment_size INTO stream_name, size
    FROM eventsql.stream s
    JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.stream_id = p_stream_id AND p.partition = p_partition;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream_id USING ERRCODE = 'ES004';
    END IF;
    events := format('eventsql.%I', 'events_' || stream_name);
    of_partition := format('eventsql.%I', 'events_' || stream_name || '__p' || p_partition);
    of_segment := format('eventsql.%I', 'events_' || stream_name || '__p' || p_partition || '_s' || p_segment);
    IF octet_length('events_' || stream_name || '__p' || p_partition || '_s' || p_segment) > 63 THEN
        RAISE EXCEPTION 'the name of table % is too long', of_segment USING ERRCODE = '42622';
    END IF;

    -- "ESEG" keeps two processes from adding the same segment. New statements see what was committed before the lock
    -- was granted.
    PERFORM pg_advisory_xact_lock(1163085127, hashtext(of_partition));
    SELECT p.log_start INTO STRICT current_start
    FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition;
    SELECT b.next_offset INTO STRICT head
    FROM eventsql.producer_batch b
    WHERE b.stream_id = p_stream_id AND b.partition = p_partition
    ORDER BY b.next_offset DESC LIMIT 1;
    IF p_segment < 0 OR p_segment > (head + ahead_events_max) / size + ahead_segments_max THEN
        RAISE EXCEPTION 'segment % is too far from the head % of partition %', p_segment, head, of_partition
            USING ERRCODE = '22023';
    ELSIF (p_segment + 1) * size <= current_start
        OR EXISTS (
            SELECT FROM pg_inherits i
            WHERE i.inhrelid = to_regclass(of_segment) AND i.inhparent = to_regclass(of_partition)) THEN
        RETURN false;
    END IF;

    IF to_regclass(of_partition) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)'
            ' PARTITION BY RANGE (event_offset)', of_partition, events);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)', events, of_partition, p_partition);
        PERFORM eventsql.copy_grants_v1(events::regclass, of_partition::regclass);
    END IF;
    -- The primary key is the only index: offsets are looked up, and read in their order. INCLUDING CONSTRAINTS, because
    -- a table without the constraints that a user has added to the stream's table could not be attached.
    -- Autovacuum: events are only inserted, and dropped with their segment, and no plan of the library needs
    -- statistics; by default autovacuum would read a growing segment again and again (decision 10).
    EXECUTE format(
        'CREATE TABLE %s ('
        '  LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE, PRIMARY KEY (event_offset)'
        ') WITH ('
        '  autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,'
        '  autovacuum_analyze_threshold = 500000, autovacuum_analyze_scale_factor = 0.5,'
        '  vacuum_truncate = false, toast.vacuum_truncate = false)', of_segment, of_partition);
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
        of_partition, of_segment, p_segment * size, (p_segment + 1) * size);
    -- A fetch names the segment, so the grants of the stream's table do not suffice.
    PERFORM eventsql.copy_grants_v1(events::regclass, of_segment::regclass);
    RETURN true;
END $$;

-- Creates the tables of up to p_max partitions of a stream that lack them, each with two segments. Returns how many
-- partitions still lack them. If interrupted between two calls, the stream works: an append adds what it misses.
CREATE FUNCTION eventsql.create_partitions_v1(p_stream_id int, p_max int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    missing int[];
    base    bigint;
BEGIN
    -- "ESST": processes that create the same stream take turns.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_stream_id));
    missing := ARRAY(
        SELECT p.partition
        FROM eventsql.stream_partition p
        JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_id
          AND to_regclass(format('eventsql.%I', 'events_' || s.name || '__p' || p.partition)) IS NULL
        ORDER BY p.partition);
    FOR i IN 1 .. least(p_max, cardinality(missing)) LOOP
        SELECT b.next_offset / s.segment_size INTO base
        FROM eventsql.producer_batch b
        JOIN eventsql.stream s USING (stream_id)
        WHERE b.stream_id = p_stream_id AND b.partition = missing[i]
        ORDER BY b.next_offset DESC LIMIT 1;
        PERFORM eventsql.add_segment_v1(NULL, p_stream_id, missing[i], base),
                eventsql.add_segment_v1(NULL, p_stream_id, missing[i], base + 1);
    END LOOP;
    RETURN greatest(0, cardinality(missing) - p_max);
END $$;

-- Moves the start of a partition's log to its head and empties the segment that the head is in. Locks the row that
-- every append locks first, so no append of the partition is in progress, and appends wait until the commit. Needs the
-- rights of the owner.
--
-- Errors: ES003 the transaction is not READ COMMITTED: the head would be read as of before the lock, and events appended
-- while waiting for it would be deleted.
CREATE FUNCTION eventsql.start_at_head_v1(p_stream_id int, p_partition int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    former_start bigint;
    stream       record;
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
    SELECT s.name, s.segment_size INTO STRICT stream FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF head % stream.segment_size <> 0 THEN
        EXECUTE format('TRUNCATE eventsql.%I',
            'events_' || stream.name || '__p' || p_partition || '_s' || head / stream.segment_size);
    END IF;
END $$;

-- Deletes the rows of producers that have not published for a day, far longer than a batch can be resent. Keeps the
-- newest row of each partition, which is its head, the rows of outboxes, which may resend after any time, and those of
-- p_own. Returns how many were deleted.
--
-- A producer of an outbox counts as any other one 30 days after its outbox has sent with a later producer: then it has no
-- events left, unless the outbox's database is restored to a state from before that.
CREATE FUNCTION eventsql.delete_dead_producers_v1(p_own uuid) RETURNS bigint
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
      AND EXISTS (
          SELECT FROM eventsql.producer_batch later
          WHERE later.stream_id = b.stream_id AND later.partition = b.partition
            AND later.next_offset > b.next_offset);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

REVOKE ALL ON FUNCTION eventsql.create_stream_v1, eventsql.create_partitions_v1, eventsql.add_segment_v1,
    eventsql.delete_dead_producers_v1 FROM PUBLIC;
