-- EventSQL: what a file creates belongs to the owner of the schema, whichever role applies it; the relay keeps its rights where PUBLIC has none
-- on functions; and an erasure that was restored with a dump ends.

INSERT INTO eventsql.schema_version (version, description) VALUES (44, 'owner of functions');

SET LOCAL lock_timeout = '3s';

-- Gives what the current role has created in the schema to the role that owns schema_version: functions that run with the rights of
-- that role call new ones, which no other role may execute. Tables only where roles.sql was applied, which gives everything to one role.
-- Does nothing if the current role may not. Each later file calls it.
CREATE FUNCTION eventsql.give_to_owner_v1() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    may_set CONSTANT text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
    schema_oid oid;
    new_owner  oid;
    object     record;
BEGIN
    SELECT c.relnamespace, c.relowner INTO STRICT schema_oid, new_owner
    FROM pg_class c WHERE c.oid = 'eventsql.schema_version'::regclass;
    IF NOT pg_has_role(current_user, new_owner, may_set) OR NOT has_schema_privilege(new_owner, schema_oid, 'CREATE') THEN
        RETURN;
    END IF;
    FOR object IN
        SELECT 'FUNCTION' AS kind, p.oid::regprocedure::text AS name
        FROM pg_proc p
        WHERE p.pronamespace = schema_oid AND p.proowner <> new_owner AND pg_has_role(current_user, p.proowner, 'USAGE')
          AND (p.proname ~ '_v[0-9]+$' OR p.proname IN ('declare_restored', 'json_or_null', 'retry_refused_events'))
        UNION ALL
        SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
               c.oid::regclass::text
        FROM pg_class c
        WHERE new_owner = to_regrole('eventsql_owner')
          AND c.relnamespace = schema_oid AND c.relkind IN ('r', 'p', 'v', 'S', 'c') AND c.relowner <> new_owner
          AND pg_has_role(current_user, c.relowner, 'USAGE')
          AND NOT EXISTS ( -- a sequence of an identity column belongs to its table
              SELECT FROM pg_depend d
              WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i' AND c.relkind = 'S')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO %s', object.kind, object.name, new_owner::regrole);
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION eventsql.give_to_owner_v1 FROM PUBLIC;

-- Returns a transaction id that was stored in a table, or 0 if it is one of another cluster of databases: a dump keeps the ids of its
-- cluster, and a new one counts from the beginning. No row version of that transaction is in the new cluster.
CREATE FUNCTION eventsql.known_xid_v1(p_xid xid8) RETURNS xid8
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A transaction that began after this one may have ended.
    IF p_xid > pg_current_xact_id() AND p_xid >= pg_snapshot_xmax(pg_current_snapshot()) THEN
        RETURN '0'::xid8;
    END IF;
    RETURN p_xid;
END $$;

DO $$
DECLARE
    former     CONSTANT text := 'own::text::bigint - p_xid::text::bigint';
    definition text := pg_get_functiondef('eventsql.older_snapshot_v1'::regproc);
    grants     record;
BEGIN
    IF strpos(definition, former) = 0 THEN
        RAISE EXCEPTION 'older_snapshot_v1 is not the one of an earlier version';
    END IF;
    EXECUTE replace(definition, former, 'own::text::bigint - eventsql.known_xid_v1(p_xid)::text::bigint');
    PERFORM eventsql.give_to_owner_v1();
    -- PUBLIC need not have the right on new functions. Those who read the table may call the function that reads it.
    FOR grants IN
        SELECT a.grantee::regrole AS role
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'eventsql.outbox_transfer'::regclass AND a.privilege_type = 'SELECT' AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION eventsql.transfer_shards_v1 TO %s', grants.role);
    END LOOP;
END $$;
