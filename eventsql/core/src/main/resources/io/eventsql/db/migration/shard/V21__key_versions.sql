-- EventSQL: versions of keys. A stream may count the events of each key that were ever stored, so that a publish can name the
-- version that it expects; and it may index its events by key, so that all events of a key are read at the cost of these
-- (decision 29).

INSERT INTO eventsql.schema_version (version, description) VALUES (21, 'key versions');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

ALTER TABLE eventsql.stream
    ADD COLUMN key_tracking text NOT NULL DEFAULT 'off'
        CONSTRAINT stream_key_tracking_known CHECK (key_tracking IN ('off', 'versions', 'index')),
    ADD CONSTRAINT stream_blocks_without_key_index CHECK (storage = 'rows' OR key_tracking <> 'index');

-- The calls of a batch that were not stored because of another version: pairs of the call's step in the batch and the version
-- that the key had. NULL: none. A batch of which nothing was stored in the partition has a row, too: its number is spent.
ALTER TABLE eventsql.producer_batch ADD COLUMN conflicts bigint[];

-- How many events of a key were ever stored, whatever retention, compaction and clearing have removed. Written by every append,
-- under the lock of the partition's row of stream_partition, and by transactions that publish for the key, which lock this row.
CREATE TABLE eventsql.key_version (
    stream_id        int    NOT NULL,
    partition        int    NOT NULL,
    key              text   COLLATE "C" NOT NULL,
    version          bigint NOT NULL,                  -- counts the events waiting in the outbox, too
    reserved_version bigint,                           -- the version of the last event that went to the outbox; NULL: none waits
    PRIMARY KEY (stream_id, partition, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);

-- The events in the outbox that key_version counts already.
CREATE TABLE eventsql.key_reservation (
    outbox_id bigint PRIMARY KEY,
    stream_id int    NOT NULL,
    partition int    NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    version   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = false);
CREATE INDEX key_reservation_of_key ON eventsql.key_reservation (stream_id, partition, key, version);

-- The segments that have events of a key, for streams with an index of keys: each by its first offset when the key's first event
-- was stored in it. Compaction may have merged it since; retention may have removed it.
CREATE TABLE eventsql.key_segment (
    stream_id    int    NOT NULL,
    partition    int    NOT NULL,
    key_hash     bigint NOT NULL,                      -- hashtextextended(key, 0)
    first_offset bigint NOT NULL,
    PRIMARY KEY (stream_id, partition, key_hash, first_offset)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.5, vacuum_truncate = false);

-- Raises the error of an append that must wait: a transaction that has not ended publishes for a key, or its events still wait
-- in the outbox, which must reach the stream first.
CREATE FUNCTION eventsql.reject_reserved_key_v1(p_stream_id int) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RAISE EXCEPTION 'a transaction publishes for a key of stream %, or has published events that wait in the outbox',
        (SELECT s.name FROM eventsql.stream s WHERE s.stream_id = p_stream_id) USING ERRCODE = 'ES022';
END $$;

-- Returns how many events of a key wait in the outbox that key_version counts already.
--
-- Indexes: key_reservation_of_key, and the primary keys of the outbox's tables.
CREATE FUNCTION eventsql.reserved_events_v1(p_stream_id int, p_partition int, p_key text) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM eventsql.key_reservation r
        WHERE r.stream_id = p_stream_id AND r.partition = p_partition AND r.key = p_key
          AND EXISTS (SELECT FROM eventsql.outbox o WHERE o.id = r.outbox_id));
END $$;

-- Raises the versions of keys by the events that were stored. The rows of their partitions are locked, so only a transaction that
-- publishes for a key can have its row: that one is not waited for.
--
-- p_partitions, p_keys, p_counts: one element for each key.
--
-- Index: the primary key of key_version. Locks the rows of the keys.
--
-- Errors: ES022 the append must wait.
CREATE FUNCTION eventsql.raise_key_versions_v1(
    p_stream_id int, p_partitions int[], p_keys text[], p_counts int[])
RETURNS void
LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    raised   record;
    inserted int;
BEGIN
    WITH stored AS MATERIALIZED (
        SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key, unnest(p_counts) AS events
    ), free AS MATERIALIZED (
        SELECT s.partition, s.key, s.events
        FROM stored s
        JOIN eventsql.key_version v
          ON v.stream_id = p_stream_id AND v.partition = s.partition AND v.key = s.key
        FOR UPDATE OF v SKIP LOCKED
    ), counted AS (
        UPDATE eventsql.key_version v
        SET version = v.version + f.events
        FROM free f
        WHERE v.stream_id = p_stream_id AND v.partition = f.partition AND v.key = f.key
        RETURNING v.reserved_version
    )
    SELECT count(*)::int AS keys, count(c.reserved_version) AS reserved INTO raised FROM counted c;
    IF raised.keys < cardinality(p_keys) THEN
        -- The first events of keys. A transaction may insert the same row; then its events are counted, and come first.
        INSERT INTO eventsql.key_version (stream_id, partition, key, version)
        SELECT p_stream_id, s.partition, s.key, s.events
        FROM (SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key, unnest(p_counts) AS events) s
        WHERE NOT EXISTS (
            SELECT FROM eventsql.key_version v
            WHERE v.stream_id = p_stream_id AND v.partition = s.partition AND v.key = s.key)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        IF raised.keys + inserted < cardinality(p_keys) THEN
            PERFORM eventsql.reject_reserved_key_v1(p_stream_id);
        END IF;
    END IF;
    IF raised.reserved > 0 THEN
        IF EXISTS (
            SELECT FROM (SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key) s
            WHERE eventsql.reserved_events_v1(p_stream_id, s.partition, s.key) > 0)
        THEN
            PERFORM eventsql.reject_reserved_key_v1(p_stream_id);
        END IF;
        UPDATE eventsql.key_version v
        SET reserved_version = NULL
        FROM (SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key) s
        WHERE v.stream_id = p_stream_id AND v.partition = s.partition AND v.key = s.key AND v.reserved_version IS NOT NULL;
        DELETE FROM eventsql.key_reservation r -- of events that were erased in the outbox
        USING (SELECT unnest(p_partitions) AS partition, unnest(p_keys) AS key) s
        WHERE r.stream_id = p_stream_id AND r.partition = s.partition AND r.key = s.key;
    END IF;
END $$;

-- Counts the events that a statement has inserted into the table of a stream, and records their segments if the stream has an
-- index of keys. Arguments: the stream's id; its key tracking. As a trigger it misses no append, whatever function or release of
-- the library executes it, and costs streams without it nothing.
--
-- Errors: those of raise_key_versions_v1.
CREATE FUNCTION eventsql.count_key_events_v1() RETURNS trigger
LANGUAGE plpgsql
SET jit = off
AS $$
DECLARE
    id         int := TG_ARGV[0];
    partitions int[];
    keys       text[];
    counts     int[];
BEGIN
    IF coalesce(current_setting('eventsql.counted', true), '') <> 'on' THEN -- else they were counted before
        SELECT array_agg(e.partition), array_agg(e.key), array_agg(e.events)
        INTO partitions, keys, counts
        FROM (
            SELECT n.partition, n.key, count(*)::int AS events
            FROM new_events n WHERE n.key IS NOT NULL
            GROUP BY n.partition, n.key) e;
        IF keys IS NOT NULL THEN
            PERFORM eventsql.raise_key_versions_v1(id, partitions, keys, counts);
        END IF;
    END IF;
    IF TG_ARGV[1] = 'index' THEN
        INSERT INTO eventsql.key_segment (stream_id, partition, key_hash, first_offset)
        SELECT DISTINCT id, n.partition, hashtextextended(n.key, 0), g.first_offset
        FROM new_events n
        CROSS JOIN LATERAL (
            SELECT s.first_offset FROM eventsql.segment s
            WHERE s.stream_id = id AND s.partition = n.partition AND s.first_offset <= n.event_offset
            ORDER BY s.first_offset DESC LIMIT 1) g
        WHERE n.key IS NOT NULL
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

-- As count_key_events_v1, for a stream that stores blocks.
CREATE FUNCTION eventsql.count_key_blocks_v1() RETURNS trigger
LANGUAGE plpgsql
SET jit = off
AS $$
DECLARE
    id         int := TG_ARGV[0];
    partitions int[];
    keys       text[];
    counts     int[];
BEGIN
    IF coalesce(current_setting('eventsql.counted', true), '') = 'on' THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(e.partition), array_agg(e.key), array_agg(e.events)
    INTO partitions, keys, counts
    FROM (
        SELECT b.partition, u.key, count(*)::int AS events
        FROM new_events b
        CROSS JOIN LATERAL (SELECT e.key FROM eventsql.block_events_v1(b.block, b.events) AS e OFFSET 0) AS u
        WHERE u.key IS NOT NULL
        GROUP BY b.partition, u.key) e;
    IF keys IS NOT NULL THEN
        PERFORM eventsql.raise_key_versions_v1(id, partitions, keys, counts);
    END IF;
    RETURN NULL;
END $$;

-- Appends one batch as append_v1 does, of which some calls expect a version of their key. Such a call is stored if its key has
-- that version, otherwise it is left out: that is its outcome, and no error of the batch. Returns the base offset of each
-- partition, and the calls that were left out: pairs of a step and the version that its key had. A batch that is stored already
-- gets the answer that it got first.
--
-- p_steps: one element for each event: the step that it belongs to, from 1; 0: its key has no step.
-- p_step_keys, p_step_expected, p_step_counts: one element for each step, in the order of the calls: its key, the expected version
-- (NULL: any), and the number of its events. A step is a call that expects a version, or an event of another call with a key of
-- such a call.
-- p_key_groups, p_key_names: the keys of the steps: each with its element in p_partitions.
--
-- Locks: as append_v1, then the rows of the keys.
--
-- Errors: those of append_v1; ES022 the append must wait for a transaction; ES023 the stream does not count the events of keys.
CREATE FUNCTION eventsql.append_expected_v1(
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_groups int[], p_indexes int[], p_keys text[], p_values bytea[], p_headers text[],
    p_steps int[], p_step_keys int[], p_step_expected bigint[], p_step_counts int[],
    p_key_groups int[], p_key_names text[],
    OUT bases bigint[], OUT conflicts bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off -- a plan that must sort all the same seems to cost enough for it
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s'
AS $$
DECLARE
    ends_at         timestamptz := clock_timestamp() + nullif(p_time_limit_ms, 0) * interval '1 ms';
    partition_count int := cardinality(p_partitions);
    duplicates      int := 0;
    stream          record;
    last            record;
    head            record;
    own             record;
    versions        bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_key_names)]);
    counts          int[] := p_counts;
    rejected        int[] := '{}';
    accepted        int[];
    kept            record;
    k               int;
    g               int;
    first           int := 1;
    beyond          int;
    of_group        bigint[];
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

    bases := array_fill(0::bigint, ARRAY[partition_count]);
    conflicts := '{}';
    FOR i IN 1 .. partition_count LOOP
        IF i > 1 AND clock_timestamp() > ends_at THEN
            RAISE EXCEPTION 'the time limit of % ms has passed; locked % of % partitions',
                p_time_limit_ms, i - 1, partition_count USING ERRCODE = 'ES013';
        END IF;
        SELECT p.map_version, s.name, s.key_tracking INTO stream
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
        ELSIF stream.key_tracking = 'off' AND i = ANY (p_key_groups) THEN
            RAISE EXCEPTION 'stream % does not count the events of its keys', p_streams[i] USING ERRCODE = 'ES023';
        END IF;

        -- New statements have new snapshots: they see everything committed before the lock was granted.
        SELECT b.batch_number, b.base_offset, b.conflicts INTO last
        FROM eventsql.producer_batch b
        WHERE b.producer_id = p_producer AND b.stream_id = p_stream_ids[i] AND b.partition = p_partitions[i]
        ORDER BY b.batch_number DESC LIMIT 1;
        IF last.batch_number = p_number THEN
            bases[i] := last.base_offset;
            conflicts := conflicts || coalesce(last.conflicts, '{}');
            duplicates := duplicates + 1;
        ELSIF last.batch_number > p_number THEN
            RAISE EXCEPTION 'batch % is older than the stored batch %', p_number, last.batch_number
                USING ERRCODE = 'ES002';
        END IF;
    END LOOP;
    IF duplicates = partition_count THEN
        RETURN;
    ELSIF duplicates > 0 THEN
        RAISE EXCEPTION 'batch % is stored in % of % partitions', p_number, duplicates, partition_count
            USING ERRCODE = 'ES005';
    END IF;

    FOR i IN 1 .. cardinality(p_key_names) LOOP
        SELECT v.version, v.reserved_version INTO own
        FROM eventsql.key_version v
        WHERE v.stream_id = p_stream_ids[p_key_groups[i]] AND v.partition = p_partitions[p_key_groups[i]]
          AND v.key = p_key_names[i]
        FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            versions[i] := own.version;
            IF own.reserved_version IS NOT NULL AND eventsql.reserved_events_v1(
                p_stream_ids[p_key_groups[i]], p_partitions[p_key_groups[i]], p_key_names[i]) > 0
            THEN
                PERFORM eventsql.reject_reserved_key_v1(p_stream_ids[p_key_groups[i]]);
            END IF;
        ELSIF EXISTS (
            SELECT FROM eventsql.key_version v
            WHERE v.stream_id = p_stream_ids[p_key_groups[i]] AND v.partition = p_partitions[p_key_groups[i]]
              AND v.key = p_key_names[i])
        THEN
            PERFORM eventsql.reject_reserved_key_v1(p_stream_ids[p_key_groups[i]]);
        END IF;
    END LOOP;
    FOR s IN 1 .. cardinality(p_step_keys) LOOP
        k := p_step_keys[s];
        IF p_step_expected[s] <> versions[k] THEN
            conflicts := conflicts || ARRAY[s, versions[k]];
            rejected := rejected || s;
            counts[p_key_groups[k]] := counts[p_key_groups[k]] - p_step_counts[s];
        ELSE
            versions[k] := versions[k] + p_step_counts[s];
        END IF;
    END LOOP;

    -- What is left is a batch like any other. The locks are held.
    IF cardinality(rejected) = 0 THEN
        bases := eventsql.append_v1(
            p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms, p_streams, p_stream_ids, p_partitions,
            p_counts, p_groups, p_indexes, p_keys, p_values, p_headers);
        RETURN;
    END IF;
    accepted := ARRAY(SELECT n FROM generate_series(1, partition_count) AS n WHERE counts[n] > 0 ORDER BY n);
    IF cardinality(accepted) > 0 THEN
        SELECT array_agg(array_position(accepted, e.g) ORDER BY e.n) AS groups, array_agg(e.x ORDER BY e.n) AS indexes,
               array_agg(e.k ORDER BY e.n) AS keys, array_agg(e.v ORDER BY e.n) AS vals,
               array_agg(e.h ORDER BY e.n) AS headers
        INTO kept
        FROM (
            SELECT u.g, u.n, u.k, u.v, u.h, (row_number() OVER (PARTITION BY u.g ORDER BY u.n) - 1)::int AS x
            FROM unnest(p_groups, p_steps, p_keys, p_values, p_headers) WITH ORDINALITY AS u (g, s, k, v, h, n)
            WHERE u.s <> ALL (rejected)) e;
        FOR own IN
            SELECT u.g, u.base FROM unnest(accepted, eventsql.append_v1(
                p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms,
                ARRAY(SELECT p_streams[a.g] FROM unnest(accepted) WITH ORDINALITY AS a (g, n) ORDER BY a.n),
                ARRAY(SELECT p_stream_ids[a.g] FROM unnest(accepted) WITH ORDINALITY AS a (g, n) ORDER BY a.n),
                ARRAY(SELECT p_partitions[a.g] FROM unnest(accepted) WITH ORDINALITY AS a (g, n) ORDER BY a.n),
                ARRAY(SELECT counts[a.g] FROM unnest(accepted) WITH ORDINALITY AS a (g, n) ORDER BY a.n),
                kept.groups, kept.indexes, kept.keys, kept.vals, kept.headers)) AS u (g, base)
        LOOP
            bases[own.g] := own.base;
        END LOOP;
    END IF;

    -- The outcomes belong to the number of the batch, in the row of each partition. Steps are in the order of the partitions.
    WHILE first <= cardinality(rejected) LOOP
        g := p_key_groups[p_step_keys[rejected[first]]];
        beyond := first + 1;
        WHILE beyond <= cardinality(rejected) AND p_key_groups[p_step_keys[rejected[beyond]]] = g LOOP
            beyond := beyond + 1;
        END LOOP;
        of_group := conflicts[2 * first - 1 : 2 * beyond - 2];
        first := beyond;
        IF counts[g] > 0 THEN
            UPDATE eventsql.producer_batch b
            SET conflicts = of_group
            WHERE b.producer_id = p_producer AND b.stream_id = p_stream_ids[g] AND b.partition = p_partitions[g]
              AND b.batch_number = p_number;
            CONTINUE;
        END IF;
        SELECT b.next_offset INTO STRICT head
        FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_ids[g] AND b.partition = p_partitions[g]
        ORDER BY b.next_offset DESC LIMIT 1;
        bases[g] := head.next_offset;
        SELECT b.ctid AS tid, b.batch_number, b.next_offset INTO last
        FROM eventsql.producer_batch b
        WHERE b.producer_id = p_producer AND b.stream_id = p_stream_ids[g] AND b.partition = p_partitions[g]
        ORDER BY b.batch_number DESC LIMIT 1;
        IF last.next_offset = head.next_offset THEN
            -- The producer's row is the head, which must stay: it gets the number.
            UPDATE eventsql.producer_batch b
            SET batch_number = p_number, base_offset = head.next_offset, conflicts = of_group
            WHERE b.ctid = last.tid AND b.producer_id = p_producer AND b.batch_number = last.batch_number
              AND b.stream_id = p_stream_ids[g] AND b.partition = p_partitions[g];
            CONTINUE;
        END IF;
        -- A row that is not the head needs some offset below it: a random negative one, which no other row has.
        INSERT INTO eventsql.producer_batch
            (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at, conflicts)
        VALUES (p_stream_ids[g], p_partitions[g],
                -1 - (hashtextextended(gen_random_uuid()::text, 0) & 4611686018427387903), head.next_offset,
                p_producer, p_number, clock_timestamp(), of_group);
        IF last.batch_number IS NOT NULL THEN
            DELETE FROM eventsql.producer_batch b -- by ctid, as in append_v1
            WHERE b.ctid = last.tid AND b.producer_id = p_producer AND b.batch_number = last.batch_number
              AND b.stream_id = p_stream_ids[g] AND b.partition = p_partitions[g];
        END IF;
    END LOOP;
END $$;

-- Appends events of the outbox that key_version counts already: as append_v1, whose parameters and errors it has. First it locks
-- all partitions that the relay's transaction is going to append to, in the order in which every append does.
CREATE FUNCTION eventsql.append_counted_v1(
    p_locked_stream_ids int[], p_locked_partitions int[],
    p_producer uuid, p_number bigint, p_map_version int, p_incarnation text, p_time_limit_ms int,
    p_streams text[], p_stream_ids int[], p_partitions int[], p_counts int[],
    p_groups int[], p_indexes int[], p_keys text[], p_values bytea[], p_headers text[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '5s'
AS $$
DECLARE
    bases bigint[];
BEGIN
    FOR i IN 1 .. cardinality(p_locked_partitions) LOOP
        PERFORM FROM eventsql.stream_partition p
        WHERE p.stream_id = p_locked_stream_ids[i] AND p.partition = p_locked_partitions[i]
        FOR UPDATE;
    END LOOP;
    -- No SET clause: only a superuser may create a function with one for a setting of this kind.
    PERFORM set_config('eventsql.counted', 'on', true);
    bases := eventsql.append_v1(
        p_producer, p_number, p_map_version, p_incarnation, p_time_limit_ms, p_streams, p_stream_ids, p_partitions, p_counts,
        p_groups, p_indexes, p_keys, p_values, p_headers);
    PERFORM set_config('eventsql.counted', 'off', true);
    RETURN bases;
END $$;

-- Publishes events in the caller's transaction: writes them to the outbox, raises the versions of their keys and locks these
-- until the transaction ends, so that no other publish of the keys comes in between. Returns NULL, or, if the key does not have
-- the expected version, the version that it has; -1: a version is expected of a key that belongs to another database. Then
-- nothing is written.
--
-- p_shards, p_partitions, p_keys, p_values, p_headers: one element for each event: the shard and the partition that its key
-- belongs to, NULL without a key. Events of other shards are only written to the outbox.
-- p_expected: the version that the key of the events must have; NULL: any.
--
-- Indexes: stream_name_unique, the primary key of key_version. Locks the rows of the keys, in their order.
--
-- Errors: ES023 the stream does not count the events of keys.
CREATE FUNCTION eventsql.publish_counted_v1(
    p_cluster uuid, p_stream text, p_routing_hash int, p_shards int[], p_partitions int[],
    p_keys text[], p_values bytea[], p_headers text[], p_expected bigint)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    own_shard       int := (SELECT s.shard_number FROM eventsql.shard s WHERE s.cluster_id = p_cluster);
    own_stream      int := (SELECT s.stream_id FROM eventsql.stream s WHERE s.name = p_stream AND s.key_tracking <> 'off');
    local           record;
    found_version   bigint;
    local_keys      text[] := '{}';
    local_parts     int[] := '{}';
    local_versions  bigint[] := '{}';
BEGIN
    IF p_expected IS NOT NULL AND own_shard IS DISTINCT FROM p_shards[1] THEN
        RETURN -1; -- no error, which would abort the caller's transaction
    ELSIF p_expected IS NOT NULL AND own_stream IS NULL THEN
        RAISE EXCEPTION 'stream % does not count the events of its keys', p_stream USING ERRCODE = 'ES023';
    END IF;
    FOR local IN
        SELECT e.partition, e.key, count(*) AS events
        FROM unnest(p_shards, p_partitions, p_keys) AS e (shard, partition, key)
        WHERE e.shard = own_shard AND e.key IS NOT NULL AND own_stream IS NOT NULL
        GROUP BY e.partition, e.key
        ORDER BY e.partition, e.key COLLATE "C"
    LOOP
        SELECT v.version INTO found_version
        FROM eventsql.key_version v
        WHERE v.stream_id = own_stream AND v.partition = local.partition AND v.key = local.key
        FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO eventsql.key_version (stream_id, partition, key, version)
            VALUES (own_stream, local.partition, local.key, 0)
            ON CONFLICT DO NOTHING;
            SELECT v.version INTO STRICT found_version
            FROM eventsql.key_version v
            WHERE v.stream_id = own_stream AND v.partition = local.partition AND v.key = local.key
            FOR UPDATE;
        END IF;
        IF p_expected <> found_version THEN
            RETURN found_version;
        END IF;
        UPDATE eventsql.key_version v
        SET version = v.version + local.events, reserved_version = v.version + local.events
        WHERE v.stream_id = own_stream AND v.partition = local.partition AND v.key = local.key;
        local_keys := local_keys || local.key;
        local_parts := local_parts || local.partition;
        local_versions := local_versions || found_version;
    END LOOP;
    WITH written AS (
        INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)
        SELECT (SELECT r.last_value FROM eventsql.outbox_ring r), p_stream, e.key, e.value, e.headers::json, p_routing_hash
        FROM unnest(p_keys, p_values, p_headers) WITH ORDINALITY AS e (key, value, headers, n)
        ORDER BY e.n
        RETURNING outbox.id, outbox.key
    )
    INSERT INTO eventsql.key_reservation (outbox_id, stream_id, partition, key, version)
    SELECT w.id, own_stream, k.partition, w.key, k.version + row_number() OVER (PARTITION BY w.key ORDER BY w.id)
    FROM written w
    JOIN (
        SELECT unnest(local_keys) AS key, unnest(local_parts) AS partition, unnest(local_versions) AS version
    ) k ON k.key = w.key;
    RETURN NULL;
END $$;

-- Returns the version of a key in a partition, without the events that wait in the outbox; 0: no event of it was ever stored.
--
-- Errors: ES023 the stream does not count the events of keys.
CREATE FUNCTION eventsql.key_version_v1(p_stream text, p_partition int, p_key text) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    id int;
BEGIN
    SELECT s.stream_id INTO id FROM eventsql.stream s WHERE s.name = p_stream AND s.key_tracking <> 'off';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream % does not count the events of its keys', p_stream USING ERRCODE = 'ES023';
    END IF;
    RETURN coalesce((
        SELECT v.version - CASE WHEN v.reserved_version IS NULL THEN 0
                   ELSE eventsql.reserved_events_v1(id, p_partition, p_key) END
        FROM eventsql.key_version v
        WHERE v.stream_id = id AND v.partition = p_partition AND v.key = p_key), 0);
END $$;

-- Returns the events of a key in a partition from an offset on, in order, at most p_events_max; and with each row the key's
-- version. One row without an offset: there are none. One snapshot: the version counts the events that are in the stream, not
-- those that wait in the outbox.
--
-- Indexes: the primary keys of key_version, key_segment and segment, and the index of keys of each segment that has such events.
-- Each segment is named, so the cost does not depend on the number of the others. Takes no row lock.
--
-- Errors: ES023 the stream has no index of keys.
CREATE FUNCTION eventsql.read_key_v1(
    p_stream text, p_partition int, p_key text, p_from bigint, p_events_max int)
RETURNS TABLE (
    version bigint, event_offset bigint, value bytea, headers text, published_at timestamptz, is_erased boolean)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET lock_timeout = '2s'
AS $$
DECLARE
    segments_each CONSTANT int := 16;
    stream    record;
    tables    text[];
    query     text;
    first     int := 1;
    key_now   bigint;
    next      bigint;
    left_over int := p_events_max;
    rows      int;
BEGIN
    SELECT s.stream_id, s.key_tracking, p.log_start INTO stream
    FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
    WHERE s.name = p_stream AND p.partition = p_partition;
    IF NOT FOUND OR stream.key_tracking <> 'index' THEN
        RAISE EXCEPTION 'stream % has no index of keys', p_stream USING ERRCODE = 'ES023';
    END IF;
    key_now := coalesce((
        SELECT v.version - CASE WHEN v.reserved_version IS NULL THEN 0
                   ELSE eventsql.reserved_events_v1(stream.stream_id, p_partition, p_key) END
        FROM eventsql.key_version v
        WHERE v.stream_id = stream.stream_id AND v.partition = p_partition AND v.key = p_key), 0);
    next := greatest(p_from, stream.log_start);
    -- Segments that were merged have one table.
    tables := ARRAY(
        SELECT g.table_name
        FROM eventsql.key_segment k
        CROSS JOIN LATERAL (
            SELECT s.table_name, s.first_offset, s.end_offset FROM eventsql.segment s
            WHERE s.stream_id = stream.stream_id AND s.partition = p_partition AND s.first_offset <= k.first_offset
            ORDER BY s.first_offset DESC LIMIT 1) g
        WHERE k.stream_id = stream.stream_id AND k.partition = p_partition AND k.key_hash = hashtextextended(p_key, 0)
          AND g.end_offset > greatest(k.first_offset, next) AND to_regclass(format('eventsql.%I', g.table_name)) IS NOT NULL
        GROUP BY g.table_name
        ORDER BY min(g.first_offset));
    -- A statement for several segments, because parsing and planning one costs more than reading it.
    WHILE first <= cardinality(tables) AND left_over > 0 LOOP
        SELECT string_agg(format(
                   'SELECT event_offset, value, headers, published_at, erased_at FROM eventsql.%I'
                   ' WHERE hashtextextended(key, 0) = $1 AND key = $2 AND event_offset >= $3', t.name), ' UNION ALL ')
        INTO query
        FROM unnest(tables[first : first + segments_each - 1]) AS t (name);
        RETURN QUERY EXECUTE
            'SELECT $5, event_offset, value, headers::text, published_at, erased_at IS NOT NULL FROM (' || query || ') AS events'
            || ' ORDER BY event_offset LIMIT $4'
        USING hashtextextended(p_key, 0), p_key, next, left_over, key_now;
        GET DIAGNOSTICS rows = ROW_COUNT;
        left_over := left_over - rows;
        first := first + segments_each;
    END LOOP;
    IF left_over = p_events_max THEN
        version := key_now;
        RETURN NEXT;
    END IF;
END $$;

-- Gives a segment of a stream with an index of keys that index, unless compaction has given it one.
CREATE FUNCTION eventsql.index_keys_of_segment_v1() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT s.key_tracking FROM eventsql.stream s WHERE s.stream_id = NEW.stream_id) = 'index' AND NOT EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = to_regclass(format('eventsql.%I', NEW.table_name))
          AND i.indisvalid AND i.indexprs IS NOT NULL AND i.indpred IS NOT NULL)
    THEN
        EXECUTE format(
            'CREATE INDEX ON eventsql.%I (hashtextextended(key, 0), event_offset) WHERE key IS NOT NULL', NEW.table_name);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER index_keys AFTER INSERT ON eventsql.segment
    FOR EACH ROW EXECUTE FUNCTION eventsql.index_keys_of_segment_v1();

-- Forgets the versions of a stream's keys with the stream.
CREATE FUNCTION eventsql.forget_key_versions_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF OLD.key_tracking <> 'off' THEN
        DELETE FROM eventsql.key_version v WHERE v.stream_id = OLD.stream_id;
        DELETE FROM eventsql.key_segment k WHERE k.stream_id = OLD.stream_id;
        DELETE FROM eventsql.key_reservation r WHERE r.stream_id = OLD.stream_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_key_versions AFTER DELETE ON eventsql.stream
    FOR EACH ROW EXECUTE FUNCTION eventsql.forget_key_versions_v1();

-- Creates a stream as create_stream_v3 does, with its key tracking; an existing one stays as it is.
--
-- Errors: those of create_stream_v3.
CREATE FUNCTION eventsql.create_keyed_stream_v1(
    p_name text, p_partitions int, p_segment_size bigint, p_json boolean, p_map_version int,
    p_age interval, p_bytes bigint, p_events bigint, p_handled boolean, p_abandoned_after interval,
    p_compaction boolean, p_tombstone_delay interval, p_storage text, p_key_tracking text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    stream record;
BEGIN
    -- As create_stream_v3: a stream that another process creates at the same time is not changed.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_name));
    IF EXISTS (SELECT FROM eventsql.stream s WHERE s.name = p_name) THEN
        RETURN;
    END IF;
    PERFORM eventsql.create_stream_v3(
        p_name, p_partitions, p_segment_size, p_json, p_map_version, p_age, p_bytes, p_events, p_handled, p_abandoned_after,
        p_compaction, p_tombstone_delay, p_storage);
    UPDATE eventsql.stream s
    SET key_tracking = p_key_tracking
    WHERE s.name = p_name AND p_key_tracking <> 'off'
    RETURNING s.stream_id, s.table_name, s.storage INTO stream;
    IF FOUND THEN
        EXECUTE format(
            'CREATE TRIGGER count_keys AFTER INSERT ON eventsql.%I'
            ' REFERENCING NEW TABLE AS new_events FOR EACH STATEMENT EXECUTE FUNCTION eventsql.%I(%L, %L)',
            CASE stream.storage WHEN 'rows' THEN stream.table_name ELSE stream.table_name || '__blocks' END,
            CASE stream.storage WHEN 'rows' THEN 'count_key_events_v1' ELSE 'count_key_blocks_v1' END,
            stream.stream_id, p_key_tracking);
    END IF;
END $$;

REVOKE ALL ON FUNCTION
    eventsql.create_keyed_stream_v1, eventsql.index_keys_of_segment_v1, eventsql.forget_key_versions_v1 FROM PUBLIC;

-- Where roles.sql was applied, which revokes append_v1 from PUBLIC, its grants hold for the functions that append, too.
DO $$
DECLARE
    grants record;
BEGIN
    IF EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        RETURN;
    END IF;
    ALTER FUNCTION eventsql.append_expected_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    ALTER FUNCTION eventsql.append_counted_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    ALTER FUNCTION eventsql.publish_counted_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    REVOKE ALL ON FUNCTION eventsql.append_expected_v1, eventsql.append_counted_v1, eventsql.publish_counted_v1 FROM PUBLIC;
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION eventsql.append_expected_v1, eventsql.append_counted_v1, eventsql.publish_counted_v1 TO %s',
            grants.role);
        EXECUTE format('GRANT SELECT, DELETE ON eventsql.key_reservation TO %s', grants.role);
    END LOOP;
    -- For the roles that read streams.
    ALTER FUNCTION eventsql.reserved_events_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    REVOKE ALL ON FUNCTION eventsql.reserved_events_v1 FROM PUBLIC;
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.retention_plan_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.reserved_events_v1 TO %s', grants.role);
        EXECUTE format('GRANT SELECT ON eventsql.key_version, eventsql.key_segment TO %s', grants.role);
    END LOOP;
END $$;
