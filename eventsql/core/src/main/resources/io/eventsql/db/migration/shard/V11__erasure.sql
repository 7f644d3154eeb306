-- EventSQL: erasing the values of a key's events.
--
-- An erased event keeps its offset, key and time; it has no value, and erased_at. Uses older_snapshot_v1 and
-- rewrite_table_v1 of outbox/V14, and replaced_table of V12.

INSERT INTO eventsql.schema_version (version, description) VALUES (11, 'erasure');

-- Publishers queue behind a lock that this file waits for: it fails instead, and is applied again.
SET LOCAL lock_timeout = '3s';

-- ANALYZE keeps samples of short values in pg_statistic, where no erasure finds them. It skips these columns from now on, in
-- the partitions and segments, too. Samples of parked events taken before are removed by changing the columns to the types
-- that they have, which rewrites nothing; those of a segment when its file is rewritten.
DO $$
DECLARE
    events regclass;
BEGIN
    FOR events IN
        SELECT to_regclass(format('eventsql.%I', s.table_name)) FROM eventsql.stream s ORDER BY s.stream_id
    LOOP
        IF events IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN value SET STATISTICS 0', events);
        END IF;
    END LOOP;
END $$;
ALTER TABLE eventsql.parked_event
    ALTER COLUMN value TYPE bytea, ALTER COLUMN value SET STATISTICS 0,
    ALTER COLUMN error TYPE text, ALTER COLUMN error SET STATISTICS 0;

-- The erasures of this shard, one row for each.
CREATE TABLE eventsql.erasure (
    erasure_id          uuid        PRIMARY KEY,
    stream_id           int         NOT NULL REFERENCES eventsql.stream ON DELETE CASCADE,
    key                 text        NOT NULL,
    headers             text[]      NOT NULL,          -- the names of the headers to blank
    dead_letter_streams text[]      NOT NULL,
    started_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- outboxes: no offset was read, because the outboxes come first; events: of the stream; copies: parked events and
    -- dead letters; files: no statement can read the values, but files may contain them
    phase               text        NOT NULL DEFAULT 'outboxes'
                        CONSTRAINT erasure_phase_known CHECK (phase IN ('outboxes', 'events', 'copies', 'files', 'done')),
    scanned             bigint      NOT NULL DEFAULT 0, -- offsets
    erased              bigint      NOT NULL DEFAULT 0  -- events, with their copies
);

-- The offsets that an erasure has yet to read: of its stream, then of the dead-letter streams.
CREATE TABLE eventsql.erasure_range (
    erasure_id  uuid   NOT NULL REFERENCES eventsql.erasure ON DELETE CASCADE,
    stream_id   int    NOT NULL,
    partition   int    NOT NULL,
    next_offset bigint NOT NULL,
    end_offset  bigint NOT NULL,
    PRIMARY KEY (erasure_id, stream_id, partition)
) WITH (fillfactor = 50);

-- Tables whose files may contain values that an erasure has removed.
CREATE TABLE eventsql.erasure_file (
    erasure_id uuid NOT NULL REFERENCES eventsql.erasure ON DELETE CASCADE,
    table_name text NOT NULL,
    erased_in  xid8 NOT NULL,                          -- the last transaction that erased in it
    PRIMARY KEY (erasure_id, table_name)
);

-- Returns a header; NULL if there is none, or the headers cannot be decoded.
CREATE FUNCTION eventsql.header_v1(p_headers json, p_name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN p_headers ->> p_name;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Returns the headers with some of them blank. Headers that cannot be decoded are removed as a whole.
CREATE FUNCTION eventsql.blank_headers_v1(p_headers json, p_names text[]) RETURNS json
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_headers IS NULL OR cardinality(p_names) = 0 THEN
        RETURN p_headers;
    END IF;
    RETURN (
        SELECT json_object_agg(h.key, CASE WHEN h.key = ANY (p_names) THEN '""'::json ELSE h.value END)
        FROM json_each(p_headers) h);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Records an erasure on this shard. It replaces those of the same key that have not ended, and whose headers and dead-letter
-- streams it includes: it erases what they have left. Returns its id; NULL if this shard does not have the stream.
CREATE FUNCTION eventsql.begin_erasure_v1(
    p_erasure uuid, p_stream text, p_key text, p_headers text[], p_dead_letter_streams text[])
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
BEGIN
    DELETE FROM eventsql.erasure e WHERE e.phase = 'done' AND e.started_at < now() - interval '30 days';
    INSERT INTO eventsql.erasure (erasure_id, stream_id, key, headers, dead_letter_streams)
    SELECT p_erasure, s.stream_id, p_key, p_headers, p_dead_letter_streams
    FROM eventsql.stream s WHERE s.name = p_stream
    ON CONFLICT DO NOTHING;
    IF NOT EXISTS (SELECT FROM eventsql.erasure e WHERE e.erasure_id = p_erasure) THEN
        RETURN NULL;
    END IF;
    WITH replaced AS (
        SELECT e.erasure_id
        FROM eventsql.erasure e JOIN eventsql.stream s USING (stream_id)
        WHERE s.name = p_stream AND e.key = p_key AND e.phase <> 'done' AND e.erasure_id <> p_erasure
          AND e.headers <@ p_headers AND e.dead_letter_streams <@ p_dead_letter_streams
    ), files AS (
        INSERT INTO eventsql.erasure_file AS f (erasure_id, table_name, erased_in)
        SELECT p_erasure, o.table_name, max(o.erased_in)
        FROM eventsql.erasure_file o JOIN replaced USING (erasure_id)
        GROUP BY o.table_name
        ON CONFLICT (erasure_id, table_name) DO UPDATE SET erased_in = greatest(f.erased_in, excluded.erased_in)
    )
    DELETE FROM eventsql.erasure e USING replaced r WHERE e.erasure_id = r.erasure_id;
    RETURN p_erasure;
END $$;

-- Returns the erasures of this shard, the newest first.
CREATE FUNCTION eventsql.erasures_v1()
RETURNS TABLE (
    erasure_id uuid, stream text, key text, headers text[], dead_letter_streams text[], started_at timestamptz,
    phase text, scanned bigint, erased bigint, files int)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.erasure_id, s.name, e.key, e.headers, e.dead_letter_streams, e.started_at, e.phase, e.scanned, e.erased,
           (SELECT count(*) FROM eventsql.erasure_file f WHERE f.erasure_id = e.erasure_id)::int
    FROM eventsql.erasure e JOIN eventsql.stream s USING (stream_id)
    ORDER BY e.started_at DESC, e.erasure_id
$$;

-- Adds the offsets of a stream, up to the heads, to those that an erasure reads. Those below the log's start, too, as long
-- as their segments exist.
CREATE FUNCTION eventsql.add_erasure_ranges_v1(p_erasure uuid, p_stream_id int) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    part record;
BEGIN
    FOR part IN
        SELECT p.partition, s.table_name || '__p' || p.partition AS table_name
        FROM eventsql.stream_partition p JOIN eventsql.stream s USING (stream_id)
        WHERE p.stream_id = p_stream_id ORDER BY p.partition
    LOOP
        PERFORM eventsql.reconcile_segments_v1(p_stream_id, part.partition);
        INSERT INTO eventsql.erasure_range (erasure_id, stream_id, partition, next_offset, end_offset)
        SELECT p_erasure, p_stream_id, part.partition, coalesce((
                   SELECT min(g.first_offset) FROM eventsql.segment g
                   WHERE g.stream_id = p_stream_id AND g.partition = part.partition), 0), (
                   SELECT b.next_offset FROM eventsql.producer_batch b
                   WHERE b.stream_id = p_stream_id AND b.partition = part.partition
                   ORDER BY b.next_offset DESC LIMIT 1)
        ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- Erases in the next offsets of a range, within one segment. Returns how many offsets it has read, and erased events.
CREATE FUNCTION eventsql.erase_range_v1(
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
BEGIN
    SELECT * INTO STRICT own FROM eventsql.erasure e WHERE e.erasure_id = p_erasure;
    SELECT * INTO STRICT part FROM eventsql.erasure_range r
    WHERE r.erasure_id = p_erasure AND r.stream_id = p_stream_id AND r.partition = p_partition;
    SELECT g.table_name, g.first_offset, g.end_offset INTO segment
    FROM eventsql.segment g
    WHERE g.stream_id = p_stream_id AND g.partition = p_partition AND g.end_offset > part.next_offset
    ORDER BY g.first_offset LIMIT 1;
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
        EXECUTE format(
            'UPDATE eventsql.%I SET value = NULL, headers = eventsql.blank_headers_v1(headers, $4),'
            ' erased_at = CASE WHEN value IS NULL THEN erased_at ELSE clock_timestamp() END'
            ' WHERE event_offset >= $1 AND event_offset < $2 AND key = $3'
            ' AND (value IS NOT NULL OR headers IS NOT NULL AND cardinality($4) > 0)'
            ' AND ($5 IS NULL OR eventsql.header_v1(headers, ''eventsql-dead-letter-stream'') = ANY ($5))',
            segment.table_name)
        USING part.next_offset, upto, own.key, blanked, p_copies_of;
        GET DIAGNOSTICS erased = ROW_COUNT;
        scanned := upto - part.next_offset;
        -- A gap is what compaction has deleted, which remains in the file.
        EXECUTE format(
            'SELECT $2 - $1 > count(*) FROM eventsql.%I WHERE event_offset >= $1 AND event_offset < $2',
            segment.table_name)
        INTO has_gaps USING part.next_offset, upto;
        IF erased > 0 OR has_gaps THEN
            INSERT INTO eventsql.erasure_file (erasure_id, table_name, erased_in)
            VALUES (p_erasure, segment.table_name, pg_current_xact_id())
            ON CONFLICT (erasure_id, table_name) DO UPDATE SET erased_in = excluded.erased_in;
        END IF;
    END IF;
    UPDATE eventsql.erasure_range r SET next_offset = upto
    WHERE r.erasure_id = p_erasure AND r.stream_id = p_stream_id AND r.partition = p_partition;
END $$;

-- Writes one file of an erasure anew that may contain what was erased. The table is locked for that, so one that is still
-- appended to only if it is small; otherwise when the head has left it. Returns what prevents it; NULL if there are more.
CREATE FUNCTION eventsql.rewrite_erased_file_v1(p_erasure uuid, OUT reason text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
DECLARE
    bytes_locked_max CONSTANT bigint := 64 * 1024 * 1024; -- of a segment that publishers write to
    file record;
BEGIN
    FOR file IN
        SELECT f.table_name, f.erased_in, to_regclass(format('eventsql.%I', f.table_name)) AS id, EXISTS (
                   SELECT FROM eventsql.segment g
                   WHERE g.table_name = f.table_name AND g.end_offset > (
                       SELECT b.next_offset FROM eventsql.producer_batch b
                       WHERE b.stream_id = g.stream_id AND b.partition = g.partition
                       ORDER BY b.next_offset DESC LIMIT 1)) AS is_open
        FROM eventsql.erasure_file f
        WHERE f.erasure_id = p_erasure
        ORDER BY f.table_name
    LOOP
        IF EXISTS (SELECT FROM eventsql.replaced_table r WHERE r.table_name = file.table_name) THEN
            reason := format('compaction has replaced %s, and drops it a minute later', file.table_name);
            CONTINUE;
        ELSIF file.is_open AND pg_total_relation_size(file.id) > bytes_locked_max THEN
            reason := format('publishers write to %s', file.table_name);
            CONTINUE;
        END IF;
        IF file.id IS NOT NULL THEN
            -- Publishers and consumers queue behind the lock on a table that they use all the time.
            reason := eventsql.rewrite_table_v1(
                file.table_name, file.erased_in,
                CASE WHEN file.is_open OR file.table_name = 'parked_event' THEN 100 ELSE 0 END);
            CONTINUE WHEN reason IS NOT NULL;
        END IF;
        DELETE FROM eventsql.erasure_file f WHERE f.erasure_id = p_erasure AND f.table_name = file.table_name;
        reason := NULL;
        RETURN;
    END LOOP;
END $$;

-- One step of an erasure, to be repeated in another transaction each time until the phase is done: reads at most
-- p_max_offsets offsets, erases at most that many copies, or writes one file anew. To be called first when no outbox has
-- values of the key left, because it reads the heads then: what is stored later is not erased.
--
-- Index: the primary key of each segment, in its order. Locks the erasure's row, then the rows that it erases; before the
-- copies, exclusively, what every transaction holds that stores one (erased_offsets_v1).
--
-- Errors: ES003 the transaction is not READ COMMITTED; ES018 the erasure does not exist, or was replaced.
CREATE FUNCTION eventsql.erase_step_v1(
    p_erasure uuid, p_max_offsets bigint,
    OUT phase text, OUT scanned bigint, OUT erased bigint, OUT files int, OUT is_waiting boolean, OUT reason text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    own       eventsql.erasure;
    name      text;
    part      record;
    of_range  record;
    is_copies boolean;
    changed   bigint := 0;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'erasing requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    SELECT * INTO own FROM eventsql.erasure e WHERE e.erasure_id = p_erasure FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no erasure %, or a later one of its key has replaced it', p_erasure
            USING ERRCODE = 'ES018';
    END IF;
    SELECT s.name INTO STRICT name FROM eventsql.stream s WHERE s.stream_id = own.stream_id;
    phase := own.phase;
    scanned := own.scanned;
    erased := own.erased;
    is_waiting := false;
    is_copies := own.phase = 'copies';

    IF own.phase = 'outboxes' THEN
        PERFORM eventsql.add_erasure_ranges_v1(p_erasure, own.stream_id);
        phase := 'events';
    ELSIF own.phase IN ('events', 'copies') THEN
        SELECT r.stream_id, r.partition INTO part
        FROM eventsql.erasure_range r
        WHERE r.erasure_id = p_erasure AND r.next_offset < r.end_offset
          AND (r.stream_id = own.stream_id) = NOT is_copies
        ORDER BY r.stream_id, r.partition LIMIT 1;
        IF FOUND THEN
            SELECT * INTO of_range
            FROM eventsql.erase_range_v1(
                p_erasure, part.stream_id, part.partition,
                CASE WHEN is_copies THEN own.dead_letter_streams || name END, p_max_offsets);
            scanned := scanned + of_range.scanned;
            erased := erased + of_range.erased;
        ELSIF NOT is_copies THEN
            -- "ESER": waits for the transactions that store copies and have seen no erased event. Later ones see it.
            PERFORM pg_advisory_xact_lock(1163085138, own.stream_id);
            PERFORM eventsql.add_erasure_ranges_v1(p_erasure, s.stream_id)
            FROM eventsql.stream s
            WHERE s.stream_id <> own.stream_id AND (s.name = ANY (own.dead_letter_streams) OR s.name IN (
                SELECT e.dead_letter_stream
                FROM eventsql.parked_event e JOIN eventsql.consumer c USING (consumer_id)
                WHERE c.stream_id = own.stream_id));
            phase := 'copies';
        ELSE
            UPDATE eventsql.parked_event t
            SET value = NULL, headers = eventsql.blank_headers_v1(t.headers, own.headers), error = 'erased',
                -- A tombstone stays one: its handler still deletes what it knows of the key.
                erased_at = CASE WHEN t.value IS NULL THEN t.erased_at ELSE clock_timestamp() END
            WHERE (t.consumer_id, t.partition, t.event_offset) IN (
                SELECT e.consumer_id, e.partition, e.event_offset
                FROM eventsql.parked_event e
                JOIN eventsql.consumer c USING (consumer_id)
                JOIN eventsql.stream s USING (stream_id)
                WHERE (s.stream_id = own.stream_id OR s.name = ANY (own.dead_letter_streams))
                  AND e.key = own.key AND e.erased_at IS NULL AND (e.value IS NOT NULL OR e.error <> 'erased')
                  AND (s.stream_id = own.stream_id
                       OR eventsql.header_v1(e.headers, 'eventsql-dead-letter-stream')
                           = ANY (own.dead_letter_streams || name))
                LIMIT p_max_offsets);
            GET DIAGNOSTICS changed = ROW_COUNT;
            erased := erased + changed;
            -- Also if none was parked: what was removed when it was redriven remains in the file.
            INSERT INTO eventsql.erasure_file (erasure_id, table_name, erased_in)
            VALUES (p_erasure, 'parked_event', pg_current_xact_id())
            ON CONFLICT (erasure_id, table_name) DO UPDATE SET erased_in = excluded.erased_in;
            IF changed < p_max_offsets THEN
                phase := 'files';
                -- The scan has not read them: they left the stream before.
                INSERT INTO eventsql.erasure_file (erasure_id, table_name, erased_in)
                SELECT p_erasure, t.table_name, pg_current_xact_id()
                FROM eventsql.replaced_table t
                JOIN eventsql.stream s ON starts_with(t.table_name, s.table_name || '__p')
                WHERE s.stream_id IN (SELECT r.stream_id FROM eventsql.erasure_range r WHERE r.erasure_id = p_erasure)
                ON CONFLICT DO NOTHING;
            END IF;
        END IF;
    ELSIF own.phase = 'files' THEN
        reason := eventsql.rewrite_erased_file_v1(p_erasure);
        is_waiting := reason IS NOT NULL;
        IF NOT EXISTS (SELECT FROM eventsql.erasure_file f WHERE f.erasure_id = p_erasure) THEN
            phase := 'done';
        END IF;
    END IF;
    SELECT count(*) INTO files FROM eventsql.erasure_file f WHERE f.erasure_id = p_erasure;
    UPDATE eventsql.erasure e SET phase = erase_step_v1.phase, scanned = erase_step_v1.scanned, erased = erase_step_v1.erased
    WHERE e.erasure_id = p_erasure;
END $$;

-- Returns which events of a partition are erased, for a transaction that is about to store copies of them. Until it ends,
-- no erasure begins with the copies, which would not find these. It waits at most for the function's lock_timeout.
CREATE FUNCTION eventsql.erased_offsets_v1(p_stream_id int, p_partition int, p_offsets bigint[])
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
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1163085138, p_stream_id);
    -- A new statement sees what was erased before the lock was granted.
    FOREACH next IN ARRAY p_offsets LOOP
        IF next >= coalesce(segment_end, next) OR next < segment_first THEN
            SELECT s.table_name, s.first_offset, s.end_offset INTO segment_table, segment_first, segment_end
            FROM eventsql.segment_at_v1(p_stream_id, p_partition, next) s;
        END IF;
        IF to_regclass('eventsql.' || quote_ident(segment_table)) IS NOT NULL THEN
            RETURN QUERY EXECUTE format(
                'SELECT event_offset FROM eventsql.%I WHERE event_offset = $1 AND erased_at IS NOT NULL',
                segment_table) USING next;
        END IF;
    END LOOP;
END $$;

-- Appends events as append_transferred_v1 does. p_erased: the positions, from 1 and over all partitions, of events whose
-- values were erased on their way; they are stored as erased.
--
-- Errors: those of append_transferred_v1.
CREATE FUNCTION eventsql.append_transferred_v2(
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
            EXECUTE format(
                'UPDATE eventsql.%I SET value = NULL, erased_at = clock_timestamp() WHERE event_offset = $1',
                its_segment)
            USING bases[i] + erased - first_event;
        END LOOP;
        first_event := first_event + p_counts[i];
    END LOOP;
    RETURN bases;
END $$;

-- A relay may write to the tables of streams, or has only the right to execute version 1, where roles.sql was applied: then
-- version 2 gets the same rights now, because its processes need it at once.
DO $$
DECLARE
    former    record;
    grantee   text;
BEGIN
    SELECT p.prosecdef, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl INTO STRICT former
    FROM pg_proc p WHERE p.oid = 'eventsql.append_transferred_v1'::regproc;
    IF former.prosecdef THEN
        ALTER FUNCTION eventsql.append_transferred_v2 SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
        REVOKE ALL ON FUNCTION eventsql.append_transferred_v2 FROM PUBLIC;
        FOR grantee IN
            SELECT a.grantee::regrole::text FROM aclexplode(former.acl) a WHERE a.grantee <> 0
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.append_transferred_v2 TO %s', grantee);
        END LOOP;
    END IF;
END $$;

REVOKE ALL ON FUNCTION
    eventsql.begin_erasure_v1, eventsql.erasures_v1, eventsql.add_erasure_ranges_v1, eventsql.erase_range_v1,
    eventsql.rewrite_erased_file_v1, eventsql.erase_step_v1 FROM PUBLIC;
