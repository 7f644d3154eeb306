-- EventSQL: reading from replicas.

INSERT INTO eventsql.schema_version (version, description) VALUES (26, 'replicas');

-- What the primary server writes for readers of its standbys: its incarnation, and its time. A standby that has this row has
-- the history in which it was written, and everything that was committed before that time. One row.
CREATE TABLE eventsql.replicated_incarnation (
    incarnation text        PRIMARY KEY,
    recorded_at timestamptz NOT NULL
) WITH (fillfactor = 50, vacuum_truncate = false);

-- Records the incarnation and the time, at most once in p_interval, and returns the time that is recorded. Called on the primary by each
-- process that reads from a standby. Waits for no replica: the row is for those that have it. Locks the row to write it.
--
-- Errors: ES011 the database has another incarnation than p_incarnation.
CREATE FUNCTION eventsql.record_incarnation_v1(p_incarnation text, p_interval interval) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    now_at   timestamptz := clock_timestamp();
    recorded timestamptz;
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    SELECT r.recorded_at INTO recorded FROM eventsql.replicated_incarnation r WHERE r.incarnation = p_incarnation;
    IF recorded BETWEEN now_at - p_interval AND now_at THEN
        RETURN recorded;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO eventsql.replicated_incarnation AS r (incarnation, recorded_at)
    VALUES (p_incarnation, now_at)
    ON CONFLICT (incarnation) DO UPDATE SET recorded_at = excluded.recorded_at;
    DELETE FROM eventsql.replicated_incarnation r WHERE r.incarnation <> p_incarnation;
    RETURN now_at;
END $$;

-- Where roles.sql was applied, the roles that read may use replicas before it is applied again.
DO $$
DECLARE
    grantee text;
BEGIN
    REVOKE ALL ON FUNCTION eventsql.record_incarnation_v1 FROM PUBLIC;
    FOR grantee IN
        SELECT DISTINCT a.grantee::regrole::text
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.segment'::regclass AND a.privilege_type = 'SELECT' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT ON eventsql.replicated_incarnation TO %s', grantee);
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.record_incarnation_v1 TO %s', grantee);
    END LOOP;
END $$;
