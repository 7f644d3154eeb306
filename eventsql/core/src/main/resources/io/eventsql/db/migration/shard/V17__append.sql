-- EventSQL: an append function for each stream. It names the stream's table, so PostgreSQL keeps the plan of its INSERT, where
-- append_v1 has it parsed and planned with every call. append_v1 stays, for batches of several streams and for processes of the
-- previous release: both lock the same rows in the same order, and answer a repeated batch alike, also one that the other
-- function has stored.

INSERT INTO eventsql.schema_version (version, description) VALUES (17, 'append');

SET LOCAL lock_timeout = '3s';

-- Checks an append to one partition as append_v1 does, locks the partition, and records the batch. Returns the offset of its
-- first event and the time at which its events are published; is_new: they are to be stored, otherwise the batch is stored
-- already.
--
-- Called by append_v2_<id>, whose settings apply here, too: the plans of these statements are shared by all streams.
--
-- Indexes: the primary key of stream_partition, producer_batch_of_producer and producer_batch_head. Locks the partition's row of
-- stream_partition until the commit is visible.
--
-- Errors: those of append_v1; 42883 the function of the stream was written for another table.
CREATE FUNCTION eventsql.begin_append_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_stream text, p_stream_id int, p_table text, p_partition int, p_count int,
    OUT is_new boolean, OUT first_offset bigint, OUT published timestamptz)
LANGUAGE plpgsql
AS $$
DECLARE
    stored_map    int;
    stored_stream text;
    stored_table  text;
    last_tid      tid;
    last_number   bigint;
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

    SELECT p.map_version, s.name, s.table_name INTO stored_map, stored_stream, stored_table
    FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
    WHERE p.stream_id = p_stream_id AND p.partition = p_partition
    FOR UPDATE OF p;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'partition % of stream % does not exist', p_partition, p_stream USING ERRCODE = 'ES004';
    ELSIF stored_stream <> p_stream THEN
        RAISE EXCEPTION 'stream % is %, not %', p_stream_id, stored_stream, p_stream USING ERRCODE = 'ES012';
    ELSIF stored_table <> p_table THEN -- rows of another database were loaded into this one
        RAISE EXCEPTION 'the append function of stream % writes to %, not to %', p_stream, p_table, stored_table
            USING ERRCODE = 'undefined_function';
    ELSIF stored_map <> p_map_version THEN
        RAISE EXCEPTION 'map version is %, not %', stored_map, p_map_version USING ERRCODE = 'ES001';
    END IF;

    -- New statements have new snapshots: they see everything committed before the lock was granted.
    SELECT ctid, batch_number, base_offset INTO last_tid, last_number, first_offset
    FROM eventsql.producer_batch
    WHERE producer_id = p_producer AND stream_id = p_stream_id AND partition = p_partition
    ORDER BY batch_number DESC LIMIT 1;
    IF last_number = p_number THEN
        is_new := false;
        RETURN;
    ELSIF last_number > p_number THEN
        RAISE EXCEPTION 'batch % is older than the stored batch %', p_number, last_number USING ERRCODE = 'ES002';
    END IF;

    SELECT next_offset, greatest(published_at, clock_timestamp()) INTO STRICT first_offset, published
    FROM eventsql.producer_batch
    WHERE stream_id = p_stream_id AND partition = p_partition
    ORDER BY next_offset DESC LIMIT 1;
    INSERT INTO eventsql.producer_batch
        (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
    VALUES (p_stream_id, p_partition, first_offset + p_count, first_offset, p_producer, p_number, published);
    IF last_number IS NOT NULL THEN
        -- By ctid, as in append_v1.
        DELETE FROM eventsql.producer_batch
        WHERE ctid = last_tid AND producer_id = p_producer AND batch_number = last_number
          AND stream_id = p_stream_id AND partition = p_partition;
    END IF;
    is_new := true;
END $$;

-- As begin_append_v1, for several partitions of one stream, in their order, all or none. Returns an element for each of them.
CREATE FUNCTION eventsql.begin_append_partitions_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_stream text, p_stream_id int, p_table text, p_partitions int[], p_counts int[],
    OUT is_new boolean, OUT first_offsets bigint[], OUT published timestamptz[])
LANGUAGE plpgsql
AS $$
DECLARE
    ends_at         timestamptz := clock_timestamp() + nullif(p_time_limit_ms, 0) * interval '1 ms';
    partition_count int := cardinality(p_partitions);
    duplicates      int;
    last_tids       tid[];
    last_number     bigint;
    stored_map      int;
    stored_stream   text;
    stored_table    text;
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
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;

    -- One by one, because the time limit holds for each.
    FOR i IN 1 .. partition_count LOOP
        IF i > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; locked % of % partitions',
                p_time_limit_ms, i - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        SELECT p.map_version, s.name, s.table_name INTO stored_map, stored_stream, stored_table
        FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_id AND p.partition = p_partitions[i]
        FOR UPDATE OF p;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'partition % of stream % does not exist', p_partitions[i], p_stream USING ERRCODE = 'ES004';
        ELSIF stored_stream <> p_stream THEN
            RAISE EXCEPTION 'stream % is %, not %', p_stream_id, stored_stream, p_stream USING ERRCODE = 'ES012';
        ELSIF stored_table <> p_table THEN
            RAISE EXCEPTION 'the append function of stream % writes to %, not to %', p_stream, p_table, stored_table
                USING ERRCODE = 'undefined_function';
        ELSIF stored_map <> p_map_version THEN
            RAISE EXCEPTION 'map version is %, not %', stored_map, p_map_version USING ERRCODE = 'ES001';
        END IF;
    END LOOP;

    -- A new statement has a new snapshot: it sees everything committed before the locks were granted.
    SELECT count(*) FILTER (WHERE e.batch_number = p_number), max(e.batch_number), array_agg(e.tid),
           array_agg(CASE WHEN e.batch_number = p_number THEN e.base_offset ELSE e.next_offset END),
           array_agg(greatest(e.published_at, clock_timestamp()))
    INTO duplicates, last_number, last_tids, first_offsets, published
    FROM (
        SELECT last.tid, last.batch_number, last.base_offset, head.next_offset, head.published_at
        FROM unnest(p_partitions) WITH ORDINALITY AS u (partition, n)
        CROSS JOIN LATERAL (
            SELECT h.next_offset, h.published_at FROM eventsql.producer_batch h
            WHERE h.stream_id = p_stream_id AND h.partition = u.partition
            ORDER BY h.next_offset DESC LIMIT 1) head
        LEFT JOIN LATERAL (
            SELECT b.ctid AS tid, b.batch_number, b.base_offset FROM eventsql.producer_batch b
            WHERE b.producer_id = p_producer AND b.stream_id = p_stream_id AND b.partition = u.partition
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
    ELSIF clock_timestamp() > ends_at THEN
        RAISE EXCEPTION 'the time limit of % ms has passed; wrote to 0 of % partitions', p_time_limit_ms, partition_count
            USING ERRCODE = 'ES013';
    END IF;

    INSERT INTO eventsql.producer_batch
        (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
    SELECT p_stream_id, e.partition, e.base + e.count, e.base, p_producer, p_number, e.published
    FROM (
        SELECT unnest(p_partitions) AS partition, unnest(first_offsets) AS base, unnest(p_counts) AS count,
               unnest(begin_append_partitions_v1.published) AS published) e;
    IF last_number IS NOT NULL THEN
        -- By ctid: IS NOT DISTINCT FROM uses no index, so the planner cannot choose one that leads through all dead rows of
        -- the stream. A ctid may belong to another row by now, as in append_v1.
        DELETE FROM eventsql.producer_batch b
        USING (SELECT unnest(last_tids) AS tid, unnest(p_partitions) AS partition) l
        WHERE b.ctid = l.tid AND b.producer_id IS NOT DISTINCT FROM p_producer
          AND b.stream_id IS NOT DISTINCT FROM p_stream_id AND b.partition IS NOT DISTINCT FROM l.partition
          AND b.batch_number <> p_number;
    END IF;
END $$;

-- Gives the functions append_v2_<id> of one stream, or of all (NULL), the owner, the rights and the grants of append_v1. To be
-- called after a GRANT or REVOKE on append_v1; roles.sql calls it. A role without the right on the function of a stream appends
-- by append_v1. Needs the rights of the owner.
CREATE FUNCTION eventsql.apply_append_grants_v1(p_stream_id int DEFAULT NULL) RETURNS void
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
        WHERE p.pronamespace = model.pronamespace AND p.proname ~ '^append_v2_[0-9]+$'
          AND (p_stream_id IS NULL OR p.proname = 'append_v2_' || p_stream_id)
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

-- Creates the function append_v2_<id> of a stream, or replaces it. It appends one batch to partitions of the stream, all or none,
-- in one round trip, and returns the base offset of each partition. Its parameters and errors are those of append_v1, but for:
--
-- p_stream: the name of the stream, which is compared with that of the id.
-- p_groups, p_indexes: NULL if the batch has one partition, where they say nothing.
--
-- Two statements, because the events of one partition need no arrays that say where they belong. Several unnest in the select
-- list instead of one WITH ORDINALITY, which copies its rows once more.
CREATE FUNCTION eventsql.create_append_function_v1(p_stream_id int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $create$
DECLARE
    its_table text;
BEGIN
    SELECT s.table_name INTO STRICT its_table FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION eventsql.append_v2_%s('
        '    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,'
        '    p_stream text, p_partitions int[], p_counts int[], p_groups int[], p_indexes int[],'
        '    p_keys text[], p_values bytea[], p_headers text[])'
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
BEGIN
    IF cardinality(p_partitions) = 1 THEN
        batch := eventsql.begin_append_v1(
            p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
            p_stream, %1$s, %2$L, p_partitions[1], p_counts[1]);
        IF batch.is_new THEN
            INSERT INTO eventsql.%2$I (partition, event_offset, key, value, headers, published_at)
            SELECT p_partitions[1], x, k, v, h::json, batch.published
            FROM (
                SELECT generate_series(batch.first_offset, batch.first_offset + p_counts[1] - 1) AS x,
                       unnest(p_keys) AS k, unnest(p_values) AS v, unnest(p_headers) AS h) AS e;
        END IF;
        RETURN ARRAY[batch.first_offset];
    END IF;
    batch := eventsql.begin_append_partitions_v1(
        p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
        p_stream, %1$s, %2$L, p_partitions, p_counts);
    IF batch.is_new THEN
        INSERT INTO eventsql.%2$I (partition, event_offset, key, value, headers, published_at)
        SELECT p_partitions[g], batch.first_offsets[g] + x, k, v, h::json, batch.published[g]
        FROM (
            SELECT unnest(p_groups) AS g, unnest(p_indexes) AS x,
                   unnest(p_keys) AS k, unnest(p_values) AS v, unnest(p_headers) AS h) AS e;
    END IF;
    RETURN batch.first_offsets;
END
$template$, p_stream_id, its_table));
    PERFORM eventsql.apply_append_grants_v1(p_stream_id);
END $create$;

-- The function is created and dropped with the stream, whatever inserts or deletes its row: a function of the previous release, a
-- restored dump.
CREATE FUNCTION eventsql.maintain_append_function_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        EXECUTE format('DROP FUNCTION IF EXISTS eventsql.append_v2_%s', OLD.stream_id);
    ELSE
        PERFORM eventsql.create_append_function_v1(NEW.stream_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER append_function AFTER INSERT OR DELETE OR UPDATE OF table_name ON eventsql.stream
    FOR EACH ROW EXECUTE FUNCTION eventsql.maintain_append_function_v1();

REVOKE ALL ON FUNCTION eventsql.apply_append_grants_v1, eventsql.create_append_function_v1, eventsql.maintain_append_function_v1
    FROM PUBLIC;

SELECT eventsql.create_append_function_v1(s.stream_id) FROM eventsql.stream s;
