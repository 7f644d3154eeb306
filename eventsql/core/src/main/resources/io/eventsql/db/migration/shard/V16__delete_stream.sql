-- EventSQL: deleting streams. A stream goes in many transactions, because a transaction that dropped thousands of tables
-- would exhaust the server's lock table: the first one deletes its rows, so that publishers and consumers find no such
-- stream, and each of the others drops a few tables. If interrupted between two of them, repeating the calls does the rest.

INSERT INTO eventsql.schema_version (version, description) VALUES (16, 'deleting streams');

-- Streams whose tables are not all dropped yet.
CREATE TABLE eventsql.deleted_stream (
    name       text        PRIMARY KEY,
    table_name text        NOT NULL,                   -- of its events, in this schema
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A stream of that name would get the same tables.
CREATE FUNCTION eventsql.reject_deleted_stream_v1() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM eventsql.deleted_stream d WHERE d.name = NEW.name) THEN
        RAISE EXCEPTION 'stream % is being deleted, and not all of its tables are dropped yet; delete it again', NEW.name
            USING ERRCODE = 'ES019';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER not_being_deleted BEFORE INSERT ON eventsql.stream
    FOR EACH ROW EXECUTE FUNCTION eventsql.reject_deleted_stream_v1();

-- Returns what forbids to delete a stream, as a sentence; NULL if nothing does. Scans the outbox of this database.
CREATE FUNCTION eventsql.deletion_obstacle_v1(p_name text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    consumers text;
BEGIN
    SELECT string_agg(c.name, ', ' ORDER BY c.name) INTO consumers
    FROM eventsql.consumer c
    JOIN eventsql.stream s USING (stream_id)
    WHERE s.name = p_name AND EXISTS (
        SELECT FROM eventsql.consumer_partition p
        WHERE p.consumer_id = c.consumer_id AND p.member_id IS NOT NULL AND p.expires_at > clock_timestamp());
    IF consumers IS NOT NULL THEN
        RETURN 'it is consumed; close the members of ' || consumers;
    ELSIF EXISTS (SELECT FROM eventsql.outbox o WHERE o.stream = p_name)
        OR EXISTS (SELECT FROM eventsql.outbox_transfer t WHERE t.stream = p_name)
    THEN
        RETURN 'events for it wait in the outbox';
    END IF;
    RETURN NULL;
END $$;

-- Deletes the rows of a stream, with its consumers, their offsets and parked events. Its tables follow
-- (drop_deleted_stream_v1). Does nothing if there is no such stream. Waits for the steps of retention and compaction in
-- progress, and for the appends; those that come later find no partition.
--
-- Errors: ES003 the transaction is not READ COMMITTED: what was committed before the locks would not be seen; ES020 the
-- stream is in use.
CREATE FUNCTION eventsql.begin_delete_stream_v1(p_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    stream   record;
    obstacle text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'deleting a stream requires isolation level READ COMMITTED, not %',
            current_setting('transaction_isolation') USING ERRCODE = 'ES003';
    END IF;
    PERFORM FROM eventsql.retention_pass FOR UPDATE;
    PERFORM FROM eventsql.compaction_pass FOR UPDATE;
    -- The rows of the partitions first, as what ends a segment and adds another one does.
    PERFORM FROM eventsql.stream_partition p
    WHERE p.stream_id = (SELECT s.stream_id FROM eventsql.stream s WHERE s.name = p_name)
    ORDER BY p.partition
    FOR UPDATE;
    SELECT s.stream_id, s.table_name INTO stream FROM eventsql.stream s WHERE s.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    obstacle := eventsql.deletion_obstacle_v1(p_name); -- a new statement sees what was committed before the locks
    IF obstacle IS NOT NULL THEN
        RAISE EXCEPTION 'stream % is in use: %', p_name, obstacle USING ERRCODE = 'ES020';
    END IF;
    DELETE FROM eventsql.producer_batch b WHERE b.stream_id = stream.stream_id;
    DELETE FROM eventsql.stream s WHERE s.stream_id = stream.stream_id;
    INSERT INTO eventsql.deleted_stream (name, table_name) VALUES (p_name, stream.table_name);
END $$;

-- Drops up to p_max tables of a stream whose rows are deleted. Returns whether to repeat the call, in another transaction.
-- Each table takes about ten entries of the server's lock table until the commit. Waits 2 s at most for a transaction that
-- reads the stream by SQL.
--
-- Indexes: pg_class_relname_nsp_index, by the beginning of the names.
CREATE FUNCTION eventsql.drop_deleted_stream_v1(p_name text, p_max int) RETURNS boolean
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
    EXECUTE format('DROP TABLE IF EXISTS eventsql.%I', stream_table);
    DELETE FROM eventsql.deleted_stream d WHERE d.name = p_name;
    RETURN false;
END $$;

REVOKE ALL ON FUNCTION eventsql.reject_deleted_stream_v1, eventsql.deletion_obstacle_v1, eventsql.begin_delete_stream_v1,
    eventsql.drop_deleted_stream_v1 FROM PUBLIC;
