-- EventSQL: more partitions for a stream, while it is used (decision 34).

INSERT INTO eventsql.schema_version (version, description) VALUES (25, 'growth');

SET LOCAL lock_timeout = '3s';

-- The maps of the streams that have grown: the partition of each slot of keys on this shard. A stream without a row was never
-- grown: its keys are spread by hash % partitions, and the map's version is that of the shard. The highest version is valid;
-- the former ones say where the earlier events of a key are. stream_partition.map_version repeats it, for appends.
CREATE TABLE eventsql.stream_map (
    stream_id   int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    map_version int         NOT NULL,
    partitions  int         NOT NULL,                  -- those that the map uses
    slots       smallint[]  NOT NULL,                  -- the number of slots never changes
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, map_version)
);

-- What a consumer must have handled before it may handle a partition: all events of the giver below end_offset, because some of
-- their keys continue in this partition. The greatest bigint: the partition is not in use yet.
CREATE TABLE eventsql.partition_barrier (
    stream_id  int    NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    partition  int    NOT NULL,
    giver      int    NOT NULL,
    end_offset bigint NOT NULL,
    PRIMARY KEY (stream_id, partition, giver)
);

-- Returns whether a partition has the batch as the last one of its producer. Called under the lock of the partition's row, only
-- if the append has another version of the map: so "wrong map" means "not stored".
--
-- Index: producer_batch_of_producer. Takes no lock.
CREATE FUNCTION eventsql.is_last_batch_v1(p_producer uuid, p_number bigint, p_stream_id int, p_partition int) RETURNS boolean
LANGUAGE plpgsql -- volatile: it sees what was committed before the lock was granted
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
BEGIN
    RETURN coalesce(p_number = (
        SELECT b.batch_number FROM eventsql.producer_batch b
        WHERE b.producer_id = p_producer AND b.stream_id = p_stream_id AND b.partition = p_partition
        ORDER BY b.batch_number DESC LIMIT 1), false);
END $$;

-- The functions that append are as before, but for one condition: a batch that is stored is answered as such whatever version of
-- the map it has. The functions that prepare fetches count the partitions as they are, not as they were when the stream was
-- created.
DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('begin_append_v1', 'stored_map <> p_map_version',
             'stored_map <> p_map_version AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_id, p_partition)'),
            ('begin_append_partitions_v1', 'stored_map <> p_map_version',
             'stored_map <> p_map_version AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_id, p_partitions[i])'),
            ('append_v1', 'stored_map <> p_map_version',
             'stored_map <> p_map_version AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_ids[i], p_partitions[i])'),
            ('append_blocks_v1', 'stream.map_version <> p_map_version',
             'stream.map_version <> p_map_version AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_ids[i], p_partitions[i])'),
            ('append_expected_v1', 'stream.map_version <> p_map_version',
             'stream.map_version <> p_map_version AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_ids[i], p_partitions[i])'),
            ('prepare_fetch_rows_v1', 's.partitions INTO stream',
             '(SELECT count(*) FROM eventsql.stream_partition c WHERE c.stream_id = s.stream_id) AS partitions INTO stream'),
            ('prepare_fetch_blocks_v1', 's.partitions INTO stream',
             '(SELECT count(*) FROM eventsql.stream_partition c WHERE c.stream_id = s.stream_id) AS partitions INTO stream')
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        changed := replace(definition, change.former, change.latter);
        IF changed = definition THEN
            RAISE EXCEPTION '% is not the one of an earlier version', change.function;
        END IF;
        EXECUTE changed;
    END LOOP;
END $$;

-- Compares the versions of the maps of a batch of several streams whose versions differ; the append that follows in the same
-- statement is given none. Returns true.
--
-- p_stream_ids, p_partitions, p_map_versions: one element for each partition, in the lock order.
--
-- Indexes: the primary key of stream_partition, producer_batch_of_producer. Locks the rows of the partitions, in their order,
-- until the commit, as the append does.
--
-- Errors: ES001 a partition has another version, and does not have the batch.
CREATE FUNCTION eventsql.require_maps_v1(
    p_producer uuid, p_number bigint, p_time_limit_ms int, p_stream_ids int[], p_partitions int[], p_map_versions int[])
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET lock_timeout = '5s'
AS $$
DECLARE
    stored_map int;
BEGIN
    IF p_time_limit_ms BETWEEN 1 AND 4999 THEN
        PERFORM set_config('lock_timeout', p_time_limit_ms::text, true);
    END IF;
    FOR i IN 1 .. cardinality(p_partitions) LOOP
        SELECT p.map_version INTO stored_map
        FROM eventsql.stream_partition p
        WHERE p.stream_id = p_stream_ids[i] AND p.partition = p_partitions[i]
        FOR UPDATE;
        IF stored_map <> p_map_versions[i]
            AND NOT eventsql.is_last_batch_v1(p_producer, p_number, p_stream_ids[i], p_partitions[i])
        THEN
            RAISE EXCEPTION 'map version is %, not %', stored_map, p_map_versions[i] USING ERRCODE = 'ES001';
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- Adds partitions to a stream until it has p_partitions, with a free lease and the offset 0 for each of its consumers. Their
-- tables follow (create_partitions_v1), and must exist before a map names the partitions. Partitions that exist stay as they
-- are.
--
-- p_closed: no consumer may take the new partitions before grow_stream_v1 has set their barriers. false: the partitions get
-- events only from those who name them, such as copies of failed events.
--
-- Indexes: the primary keys. Takes an advisory lock of the stream; locks the rows of its consumers, but not against foreign keys.
CREATE FUNCTION eventsql.add_partitions_v1(p_stream_id int, p_partitions int, p_closed boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    first_new int;
BEGIN
    IF p_partitions > 1000 THEN
        RAISE EXCEPTION 'a stream has at most 1000 partitions, not %', p_partitions USING ERRCODE = '22023';
    END IF;
    -- "ESST": as create_partitions_v1.
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_stream_id));
    PERFORM FROM eventsql.consumer c WHERE c.stream_id = p_stream_id ORDER BY c.consumer_id FOR NO KEY UPDATE;
    SELECT max(p.partition) + 1 INTO STRICT first_new FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id;
    IF p_closed THEN
        INSERT INTO eventsql.partition_barrier (stream_id, partition, giver, end_offset)
        SELECT p_stream_id, p, 0, 9223372036854775807 FROM generate_series(first_new, p_partitions - 1) AS p;
    END IF;
    INSERT INTO eventsql.stream_partition (stream_id, partition, map_version)
    SELECT p_stream_id, p, f.map_version
    FROM eventsql.stream_partition f, generate_series(first_new, p_partitions - 1) AS p
    WHERE f.stream_id = p_stream_id AND f.partition = 0;
    INSERT INTO eventsql.producer_batch
        (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)
    SELECT p_stream_id, p, 0, 0, '00000000-0000-0000-0000-000000000000', 0, clock_timestamp()
    FROM generate_series(first_new, p_partitions - 1) AS p;
    INSERT INTO eventsql.consumer_partition (consumer_id, partition)
    SELECT c.consumer_id, p
    FROM eventsql.consumer c, generate_series(first_new, p_partitions - 1) AS p
    WHERE c.stream_id = p_stream_id;
    INSERT INTO eventsql.consumer_offset
        (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
    SELECT c.consumer_id, p, 0, 0, 0, 0, clock_timestamp()
    FROM eventsql.consumer c, generate_series(first_new, p_partitions - 1) AS p
    WHERE c.stream_id = p_stream_id;
END $$;

-- Gives a stream another map, in one transaction: under the locks that every append takes first, it reads the ends of the
-- partitions that give slots away, stores the barriers of those that receive them, and raises the version of the map. Before
-- the commit nothing has changed, afterwards everything has.
--
-- p_former: the version that the caller has seen. p_slots: the partition of each slot.
--
-- Indexes: the primary keys, producer_batch_head. Locks the rows of all partitions of the stream, in their order.
--
-- Errors: ES001 the map has another version; ES003 the transaction is not READ COMMITTED; ES024 a partition has no table yet;
-- ES025 a partition is in use already.
CREATE FUNCTION eventsql.grow_stream_v1(p_stream_id int, p_former int, p_slots smallint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms' -- publishers wait for the rows that are locked already
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    first_map     int;
    first_count   int;
    former_slots  smallint[];
    last_used     int := (SELECT max(s) FROM unnest(p_slots) AS s);
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'growth requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id ORDER BY p.partition FOR UPDATE;
    -- New statements see what was appended before the locks were granted.
    SELECT p.map_version, s.partitions INTO STRICT first_map, first_count
    FROM eventsql.stream s JOIN eventsql.stream_partition p ON p.stream_id = s.stream_id AND p.partition = 0
    WHERE s.stream_id = p_stream_id;
    IF first_map <> p_former THEN
        RAISE EXCEPTION 'map version is %, not %', first_map, p_former USING ERRCODE = 'ES001';
    END IF;
    IF EXISTS (
        SELECT FROM generate_series(0, last_used) AS p
        WHERE NOT EXISTS (SELECT FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = p))
    THEN
        RAISE EXCEPTION 'a partition of the new map has no table yet' USING ERRCODE = 'ES024';
    END IF;
    -- The map that every stream begins with.
    INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
    SELECT p_stream_id, first_map, first_count,
           ARRAY(SELECT ((n - 1) % first_count)::smallint FROM generate_series(1, cardinality(p_slots)) AS n)
    WHERE NOT EXISTS (SELECT FROM eventsql.stream_map m WHERE m.stream_id = p_stream_id);
    SELECT m.slots INTO STRICT former_slots
    FROM eventsql.stream_map m WHERE m.stream_id = p_stream_id AND m.map_version = p_former;
    IF cardinality(former_slots) <> cardinality(p_slots) THEN
        RAISE EXCEPTION 'a map of stream % has % slots', p_stream_id, cardinality(former_slots) USING ERRCODE = '22023';
    END IF;
    -- A consumer may own a partition that was not closed when it was added.
    IF EXISTS (
        SELECT FROM generate_series((SELECT max(s) FROM unnest(former_slots) AS s) + 1, last_used) AS p
        WHERE NOT EXISTS (
            SELECT FROM eventsql.partition_barrier b
            WHERE b.stream_id = p_stream_id AND b.partition = p AND b.end_offset = 9223372036854775807))
    THEN
        RAISE EXCEPTION 'a partition of the new map is in use already' USING ERRCODE = 'ES025';
    END IF;
    DELETE FROM eventsql.partition_barrier b
    WHERE b.stream_id = p_stream_id AND b.partition <= last_used AND b.end_offset = 9223372036854775807;
    INSERT INTO eventsql.partition_barrier AS known (stream_id, partition, giver, end_offset)
    SELECT p_stream_id, m.receiver, m.giver, h.next_offset
    FROM (SELECT DISTINCT u.receiver, u.giver FROM unnest(p_slots, former_slots) AS u (receiver, giver)) m
    CROSS JOIN LATERAL (
        SELECT b.next_offset FROM eventsql.producer_batch b
        WHERE b.stream_id = p_stream_id AND b.partition = m.giver
        ORDER BY b.next_offset DESC LIMIT 1) h
    WHERE m.receiver <> m.giver AND h.next_offset > 0
    ON CONFLICT (stream_id, partition, giver) DO UPDATE SET end_offset = excluded.end_offset;
    INSERT INTO eventsql.stream_map (stream_id, map_version, partitions, slots)
    VALUES (p_stream_id, p_former + 1, last_used + 1, p_slots);
    UPDATE eventsql.stream_partition p SET map_version = p_former + 1 WHERE p.stream_id = p_stream_id;
END $$;

-- Returns the partitions that a consumer may not handle yet, each with a giver whose events below end_offset it has not handled,
-- and the consumer's offset there. A partition waits for one that waits, too.
--
-- Indexes: the primary keys, consumer_offset_newest. Takes no lock.
CREATE FUNCTION eventsql.held_partitions_v1(p_consumer_id int)
RETURNS TABLE (partition int, giver int, next_offset bigint, end_offset bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (
        SELECT FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
        WHERE c.consumer_id = p_consumer_id)
    THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH RECURSIVE barrier AS MATERIALIZED (
        SELECT b.partition, b.giver, o.next_offset, b.end_offset
        FROM eventsql.consumer c
        JOIN eventsql.partition_barrier b USING (stream_id)
        CROSS JOIN LATERAL (
            SELECT n.next_offset FROM eventsql.consumer_offset n
            WHERE n.consumer_id = c.consumer_id AND n.partition = b.giver
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE c.consumer_id = p_consumer_id
    ), held AS (
        SELECT b.partition, b.giver, b.next_offset, b.end_offset FROM barrier b WHERE b.next_offset < b.end_offset
        UNION
        SELECT b.partition, b.giver, b.next_offset, b.end_offset FROM held h JOIN barrier b ON b.giver = h.partition
    )
    SELECT h.partition, h.giver, h.next_offset, h.end_offset FROM held h;
END $$;

-- Returns what a consumer must handle before it may handle a partition, as a sentence; NULL: it may.
--
-- Indexes: those of held_partitions_v1, stream_name_unique, consumer_name_unique. Takes no lock.
CREATE FUNCTION eventsql.waits_for_v1(p_stream text, p_consumer text, p_partition int) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN h.end_offset = 9223372036854775807 THEN 'is being added to the stream'
                    ELSE format('waits until partition %s was handled up to offset %s; it is %s at offset %s',
                                h.giver, h.end_offset, g.state, h.next_offset) END
        FROM eventsql.consumer c
        JOIN eventsql.stream s USING (stream_id)
        CROSS JOIN LATERAL eventsql.held_partitions_v1(c.consumer_id) h
        JOIN eventsql.consumer_partition g ON g.consumer_id = c.consumer_id AND g.partition = h.giver
        WHERE s.name = p_stream AND c.name = p_consumer AND h.partition = p_partition
        ORDER BY g.state = 'running', h.next_offset < h.end_offset DESC, h.giver
        LIMIT 1);
END $$;

-- As in version 6, but no partition before its barrier is passed.
CREATE OR REPLACE FUNCTION eventsql.take_partitions_v1(
    p_incarnation text, p_consumer_id int, p_member_id uuid, p_lease interval, p_max_partitions int,
    p_excluded int[])
RETURNS TABLE (partition int, epoch bigint, next_offset bigint)
LANGUAGE plpgsql
SET lock_timeout = '500ms'
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    taken record;
    held  int[];
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    PERFORM eventsql.do_not_await_replicas_v1();
    held := ARRAY(SELECT h.partition FROM eventsql.held_partitions_v1(p_consumer_id) h);
    FOR taken IN
        SELECT p.partition, p.member_id AS former
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.state = 'running' AND p.partition <> ALL (p_excluded)
          AND p.partition <> ALL (held)
          AND (p.member_id IS NULL OR p.member_id = p_member_id OR p.expires_at <= clock_timestamp())
        ORDER BY random() LIMIT p_max_partitions -- one that cannot be taken must not block the others forever
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        -- Again, because a partition may have been added, or the consumer moved, before the row was locked. A seek locks all
        -- rows of the consumer first.
        CONTINUE WHEN EXISTS (
            SELECT FROM eventsql.held_partitions_v1(p_consumer_id) h WHERE h.partition = taken.partition);
        IF taken.former IS NOT NULL THEN
            PERFORM eventsql.terminate_handling_v1(p_consumer_id, taken.partition);
        END IF;
        BEGIN
            SELECT r.new_epoch, r.new_offset INTO epoch, next_offset
            FROM eventsql.raise_epoch_v1(p_consumer_id, taken.partition, NULL) r;
        EXCEPTION WHEN lock_not_available THEN
            EXIT; -- a transaction that could not be terminated is still committing an offset: the next call retries
        END;
        UPDATE eventsql.consumer_partition p
        SET member_id = p_member_id, expires_at = clock_timestamp() + p_lease, error = NULL
        WHERE p.consumer_id = p_consumer_id AND p.partition = taken.partition;
        partition := taken.partition;
        RETURN NEXT;
    END LOOP;
    DELETE FROM eventsql.consumer_member m
    WHERE m.consumer_id = p_consumer_id AND m.member_id IN (
        SELECT o.member_id FROM eventsql.consumer_member o
        WHERE o.consumer_id = p_consumer_id AND o.expires_at < clock_timestamp() - 10 * p_lease
        FOR UPDATE SKIP LOCKED); -- a locked one is alive: its heartbeat may wait for a partition locked here
END $$;

-- As in version 6. A consumer that is moved to before a barrier loses the partitions that the barrier holds back, until it has
-- passed it again.
CREATE OR REPLACE FUNCTION eventsql.seek_v1(
    p_incarnation text, p_consumer_id int, p_partition int, p_next_offset bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
DECLARE
    former_epoch bigint;
    is_known     boolean;
    held         record;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    -- All rows, in the order of every statement, if others may have to be freed, too.
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id AND (p.partition = p_partition OR EXISTS (
        SELECT FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
        WHERE c.consumer_id = p_consumer_id))
    ORDER BY p.partition FOR NO KEY UPDATE;
    PERFORM eventsql.terminate_handling_v1(p_consumer_id, p_partition);
    SELECT r.new_epoch - 1 INTO former_epoch
    FROM eventsql.raise_epoch_v1(p_consumer_id, p_partition, p_next_offset) r;
    IF former_epoch <> p_epoch THEN
        RAISE EXCEPTION 'partition % was taken by another member', p_partition USING ERRCODE = 'ES007';
    END IF;
    UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
    WHERE p.consumer_id = p_consumer_id AND p.partition = p_partition;
    is_known := FOUND;
    FOR held IN
        SELECT DISTINCT h.partition
        FROM eventsql.held_partitions_v1(p_consumer_id) h
        JOIN eventsql.consumer_partition p ON p.consumer_id = p_consumer_id AND p.partition = h.partition
        WHERE p.member_id IS NOT NULL
    LOOP
        PERFORM eventsql.terminate_handling_v1(p_consumer_id, held.partition);
        PERFORM eventsql.raise_epoch_v1(p_consumer_id, held.partition, NULL);
        UPDATE eventsql.consumer_partition p SET member_id = NULL, expires_at = NULL
        WHERE p.consumer_id = p_consumer_id AND p.partition = held.partition;
    END LOOP;
    RETURN is_known;
END $$;

-- Returns the keys that are parked in the givers of some partitions, and not in these: their later events may be in these. A giver
-- that was passed parks no more keys that have moved.
--
-- Indexes: the primary keys. Locks the rows of parked_key that it inserts, because they are missing.
CREATE FUNCTION eventsql.inherited_keys_v1(p_consumer_id int, p_partitions int[])
RETURNS TABLE (partition int, key text)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    source record;
BEGIN
    FOR source IN
        WITH RECURSIVE barrier AS MATERIALIZED (
            SELECT b.partition, b.giver
            FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
            WHERE c.consumer_id = p_consumer_id
        ), giver AS (
            SELECT b.partition, b.giver FROM barrier b WHERE b.partition = ANY (p_partitions)
            UNION
            SELECT g.partition, b.giver FROM giver g JOIN barrier b ON b.partition = g.giver
        )
        SELECT g.partition, array_agg(g.giver) AS givers FROM giver g GROUP BY g.partition
    LOOP
        RETURN QUERY
        SELECT DISTINCT source.partition, k.key
        FROM eventsql.parked_keys_v1(p_consumer_id, source.givers) k
        WHERE NOT EXISTS (
            SELECT FROM eventsql.parked_key o
            WHERE o.consumer_id = p_consumer_id AND o.partition = source.partition
              AND o.key_hash = eventsql.key_hash_v1(k.key));
    END LOOP;
END $$;

-- Returns whether earlier events of a key are parked in a giver of a partition: they are redriven first.
--
-- Indexes: the primary keys, parked_event_of_key. Takes no lock.
CREATE FUNCTION eventsql.is_parked_before_v1(p_consumer_id int, p_partition int, p_key_hash bytea) RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
BEGIN
    RETURN EXISTS (
        WITH RECURSIVE giver AS (
            SELECT b.stream_id, b.giver
            FROM eventsql.consumer c JOIN eventsql.partition_barrier b USING (stream_id)
            WHERE c.consumer_id = p_consumer_id AND b.partition = p_partition
            UNION
            SELECT b.stream_id, b.giver
            FROM giver g JOIN eventsql.partition_barrier b ON b.stream_id = g.stream_id AND b.partition = g.giver
        )
        SELECT FROM giver g
        JOIN eventsql.parked_event e ON e.consumer_id = p_consumer_id AND e.partition = g.giver AND e.key_hash = p_key_hash
        WHERE e.dead_letter_offset IS NULL);
END $$;

-- Removes a partition that was added and is not in use yet, with its tables. Returns whether there was one; the last one goes
-- first, so that the numbers stay without gaps.
--
-- Indexes: the primary keys. Takes an advisory lock of the stream; locks the table of the stream exclusively, without waiting for
-- more than 100 ms.
CREATE FUNCTION eventsql.remove_partition_v1(p_stream_id int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    last_partition int;
    its_table      text;
    parent         text;
BEGIN
    PERFORM pg_advisory_xact_lock(1163088724, hashtext('eventsql.stream:' || p_stream_id));
    SELECT max(p.partition) INTO STRICT last_partition FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id;
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = p_stream_id AND p.partition = last_partition FOR UPDATE; -- a growth waits, or has ended
    IF NOT EXISTS (
        SELECT FROM eventsql.partition_barrier b
        WHERE b.stream_id = p_stream_id AND b.partition = last_partition AND b.end_offset = 9223372036854775807)
    THEN
        RETURN false;
    END IF;
    PERFORM FROM eventsql.consumer c WHERE c.stream_id = p_stream_id ORDER BY c.consumer_id FOR NO KEY UPDATE;
    SELECT CASE s.storage WHEN 'rows' THEN s.table_name ELSE s.table_name || '__blocks' END,
           s.table_name || '__p' || last_partition
    INTO STRICT parent, its_table
    FROM eventsql.stream s WHERE s.stream_id = p_stream_id;
    IF to_regclass(format('eventsql.%I', its_table)) IS NOT NULL THEN
        EXECUTE format('ALTER TABLE eventsql.%I DETACH PARTITION eventsql.%I', parent, its_table);
        EXECUTE format('DROP TABLE eventsql.%I', its_table);
    END IF;
    DELETE FROM eventsql.segment g WHERE g.stream_id = p_stream_id AND g.partition = last_partition;
    DELETE FROM eventsql.consumer_offset o
    USING eventsql.consumer c
    WHERE c.stream_id = p_stream_id AND o.consumer_id = c.consumer_id AND o.partition = last_partition;
    DELETE FROM eventsql.consumer_partition p
    USING eventsql.consumer c
    WHERE c.stream_id = p_stream_id AND p.consumer_id = c.consumer_id AND p.partition = last_partition;
    DELETE FROM eventsql.partition_barrier b WHERE b.stream_id = p_stream_id AND b.partition = last_partition;
    DELETE FROM eventsql.producer_batch b WHERE b.stream_id = p_stream_id AND b.partition = last_partition;
    DELETE FROM eventsql.stream_partition p WHERE p.stream_id = p_stream_id AND p.partition = last_partition;
    RETURN true;
END $$;

REVOKE ALL ON FUNCTION
    eventsql.add_partitions_v1, eventsql.grow_stream_v1, eventsql.remove_partition_v1 FROM PUBLIC;

-- Where roles.sql was applied, the roles that read where partitions are read these tables, too, and those that append compare
-- maps.
DO $$
DECLARE
    grants record;
BEGIN
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.stream_partition'::regclass AND a.privilege_type = 'SELECT'
          AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT ON eventsql.stream_map, eventsql.partition_barrier TO %s', grants.role);
    END LOOP;
    IF EXISTS (
        SELECT FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee = 0)
    THEN
        RETURN;
    END IF;
    ALTER FUNCTION eventsql.require_maps_v1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
    REVOKE ALL ON FUNCTION eventsql.require_maps_v1 FROM PUBLIC;
    FOR grants IN
        SELECT a.grantee::regrole::text AS role
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'eventsql.append_v1'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.require_maps_v1 TO %s', grants.role);
    END LOOP;
END $$;
