-- EventSQL: settings of transactions have names that do not contain the name of the schema, so a schema of another name counts keys,
-- relays and deletes streams; functions that are created for streams can be executed where PUBLIC has no right on new ones; and a
-- restored erasure is replaced by a new one.

INSERT INTO eventsql.schema_version (version, description) VALUES (45, 'setting names');

SET LOCAL lock_timeout = '3s';

-- The name of a setting is not quoted, so these had none that is valid in a schema whose name is written with quotes. All functions are
-- changed that use one of them, however they are written. A transaction that began before, and a process of the previous release,
-- set the former names: both are read. The former prefix is put together here, because it is not the name of the schema.
DO $$
DECLARE
    reads   CONSTANT text := 'current_setting\(''[^''.]+\.(counted|relayed|keys_follow)'', true\)';
    writes  CONSTANT text := 'set_config\(''[^''.]+\.(counted|relayed|keys_follow)'',';
    changed record;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = (SELECT c.relnamespace FROM pg_class c WHERE c.oid = 'eventsql.schema_version'::regclass)
          AND (p.prosrc ~ reads OR p.prosrc ~ writes)
    LOOP
        EXECUTE regexp_replace(
            regexp_replace(
                pg_get_functiondef(changed.oid), reads,
                -- 'on' is greater than 'off', which is greater than an empty text
                'greatest(current_setting(''eventsql_keys.\1'', true), current_setting(''eventsql'' || ''.\1'', true))', 'g'),
            writes, 'set_config(''eventsql_keys.\1'',', 'g');
    END LOOP;
END $$;

-- Lets the roles that may call fetch_v2 call a function that was created for a stream.
CREATE FUNCTION eventsql.grant_stream_function_v1(p_function regprocedure) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.oid = 'eventsql.fetch_v2'::regproc AND a.grantee <> p.proowner
          AND NOT EXISTS (
              SELECT FROM pg_proc o CROSS JOIN LATERAL aclexplode(coalesce(o.proacl, acldefault('f', o.proowner))) b
              WHERE o.oid = p_function AND b.grantee = a.grantee)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', p_function, given.role);
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION eventsql.grant_stream_function_v1 FROM PUBLIC;

DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('prepare_fetch_rows_v1', '(\$create\$, function_name, body\);)',
             '\1' || chr(10)
             || '    PERFORM eventsql.grant_stream_function_v1(to_regprocedure('
             || 'format(''eventsql.%I(text, int, text, int[], bigint[], int, bigint[])'', function_name)));'),
            ('prepare_fetch_blocks_v1', '(\$create\$, function_name, body\);)',
             '\1' || chr(10)
             || '    PERFORM eventsql.grant_stream_function_v1(to_regprocedure('
             || 'format(''eventsql.%I(text, int, text, int[], bigint[], int, bigint[])'', function_name)));'),
            ('create_key_reader_v1', '(\nEND;?\s*\$function\$\s*)$',
             chr(10)
             || '    PERFORM eventsql.grant_stream_function_v1(to_regprocedure('
             || 'format(''eventsql.%I(bigint, text, bigint, int, bigint)'', p_table)));\1'),
            ('begin_erasure_v1', 'max\(o\.erased_in\)', 'max(eventsql.known_xid_v1(o.erased_in))'),
            ('begin_erasure_v1', 'greatest\(f\.erased_in, excluded\.erased_in\)',
             'greatest(eventsql.known_xid_v1(f.erased_in), excluded.erased_in)')
        ) AS c (function, former, latter)
    LOOP
        definition := pg_get_functiondef(('eventsql.' || change.function)::regproc);
        changed := regexp_replace(definition, change.former, change.latter);
        IF changed = definition THEN
            RAISE EXCEPTION '% is not the one of an earlier version: %', change.function, change.former;
        END IF;
        EXECUTE changed;
    END LOOP;
    PERFORM eventsql.give_to_owner_v1();
END $$;
