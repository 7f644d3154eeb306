-- EventSQL: roles with the least privileges that each task needs. Optional: one role that owns everything needs none of
-- them. The file can be applied at any time and again: after the first migration, and after each upgrade.
--
--   eventsql_owner      owns the schema: creates and clears streams, applies later SQL files
--   eventsql_publisher  publishes, also inside transactions of the application; schedules and cancels; adds segments
--   eventsql_relay      moves events from the outbox to their streams
--   eventsql_consumer   consumes, with parked events and dead letters; reads
--   eventsql_reader     reads streams, positions and parked events
--
-- None of them can log in: grant them to the roles of applications and people. The file is run by a superuser, or by a
-- role that owns what exists and may create roles, which becomes a member of eventsql_owner. It also serves a database that
-- has an outbox but is not a shard. It locks tables only to give them to eventsql_owner, so the first time while no application
-- is running.
--
-- Who may erase: only eventsql_owner may execute the functions that EventSql.erase calls: begin_erasure_v1, erase_step_v1,
-- erasures_v1, begin_outbox_erasure_v1, erase_outbox_step_v1 and outbox_erasure_v1. They run with the rights of the owner,
-- so another role needs no more than EXECUTE on them and what eventsql_reader has. Grant that to few: it destroys data.
--
-- The functions that publishers call run with the rights of eventsql_owner from now on: a publisher has no right on the
-- tables of streams. They have a fixed search_path, so a trigger on such a table must name the schema of what it uses.
--
-- The schema is "eventsql". To use another name, replace "eventsql." in this file, too.

DO $$
DECLARE
    new_role text;
BEGIN
    FOREACH new_role IN ARRAY ARRAY[
        'eventsql_owner', 'eventsql_publisher', 'eventsql_relay', 'eventsql_consumer', 'eventsql_reader']
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = new_role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', new_role);
        END IF;
    END LOOP;
    -- Who creates a role without being a superuser is no member of it, or may not act as it, but may grant that.
    IF current_setting('server_version_num')::int < 160000 THEN
        IF NOT pg_has_role(current_user, 'eventsql_owner', 'USAGE') THEN
            GRANT eventsql_owner TO CURRENT_USER;
        END IF;
    ELSIF NOT (pg_has_role(current_user, 'eventsql_owner', 'USAGE') AND pg_has_role(current_user, 'eventsql_owner', 'SET')) THEN
        EXECUTE 'GRANT eventsql_owner TO CURRENT_USER WITH INHERIT TRUE, SET TRUE'; -- no syntax of version 15
    END IF;
END $$;

-- The owner gets everything in the schema. A stream that belongs to another role until now becomes readable to consumers
-- and readers; later calls leave the grants of streams as they are.
DO $$
DECLARE
    schema_oid oid := (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'eventsql.schema_version'::regclass);
    new_owner  oid := 'eventsql_owner'::regrole;
    adopted    text[] := '{}';
    object     record;
BEGIN
    IF to_regclass('eventsql.stream') IS NOT NULL THEN
        adopted := ARRAY(
            SELECT s.name
            FROM eventsql.stream s
            JOIN pg_catalog.pg_class c ON c.oid = to_regclass(format('eventsql.%I', s.table_name))
            WHERE c.relowner <> new_owner);
    END IF;
    IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE oid = schema_oid) <> new_owner THEN
        EXECUTE format('ALTER SCHEMA %s OWNER TO eventsql_owner', schema_oid::regnamespace);
    END IF;
    FOR object IN -- a sequence of an identity column belongs to its table
        SELECT c.oid::regclass AS name,
               CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END AS kind
        FROM pg_catalog.pg_class c
        WHERE c.relnamespace = schema_oid AND c.relkind IN ('r', 'p', 'v', 'S', 'c') AND c.relowner <> new_owner
          AND NOT EXISTS (
              SELECT FROM pg_catalog.pg_depend d
              WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i'
                AND c.relkind = 'S')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO eventsql_owner', object.kind, object.name);
    END LOOP;
    FOR object IN
        SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = schema_oid AND p.proowner <> new_owner
    LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO eventsql_owner', object.name);
    END LOOP;

    -- Tables of streams created later; segments get the grants of their stream's table.
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE eventsql_owner IN SCHEMA %s'
        ' GRANT SELECT ON TABLES TO eventsql_consumer, eventsql_reader', schema_oid::regnamespace);
    FOR object IN
        SELECT c.oid::regclass AS name
        FROM eventsql.stream s
        JOIN pg_catalog.pg_class c ON c.oid IN (
            to_regclass(format('eventsql.%I', s.table_name)),
            to_regclass(format('eventsql.%I', s.table_name || '__json')),
            to_regclass(format('eventsql.%I', s.table_name || '__latest')))
        WHERE s.name = ANY (adopted)
    LOOP
        EXECUTE format('GRANT SELECT ON %s TO eventsql_consumer, eventsql_reader', object.name);
    END LOOP;
    FOR object IN SELECT s.stream FROM unnest(adopted) AS s (stream)
    LOOP
        PERFORM eventsql.apply_stream_grants_v1(object.stream);
    END LOOP;
END $$;

-- The library's own tables: exactly these privileges.
DO $$
DECLARE
    schema_oid oid := (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'eventsql.schema_version'::regclass);
    grants     record;
    object     record;
BEGIN
    FOR object IN -- such as default privileges on the tables of an upgrade
        SELECT c.oid::regclass AS name FROM pg_catalog.pg_class c
        WHERE c.relnamespace = schema_oid AND c.relkind IN ('r', 'p', 'v', 'S') AND c.relname NOT LIKE 'events\_%'
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader',
            object.name);
    END LOOP;
    EXECUTE format(
        'GRANT USAGE ON SCHEMA %s TO eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader',
        schema_oid::regnamespace);
    FOR grants IN
        SELECT * FROM (VALUES
            -- What every instance reads: identity, streams, and where partitions begin and end.
            ('schema_version',    'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('shard',             'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('stream',            'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('stream_partition',  'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('stream_map',        'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('partition_barrier', 'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('stream_placement',  'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('stationary_stream', 'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('moved_partition',   'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('shard_barrier',     'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('slot_end',          'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('closed_slots',      'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('shard_move',        'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('shard_barrier_passed', 'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_reader'),
            ('consumer_seek',     'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_reader'),
            ('producer_batch',    'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('outbox_relay',      'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('retention_status',  'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('compaction_status', 'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('key_version',       'SELECT', 'eventsql_publisher, eventsql_consumer, eventsql_reader'),
            ('sink_producer',     'SELECT', 'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            -- Where the events are.
            ('key_segment',       'SELECT', 'eventsql_consumer, eventsql_reader'),
            ('segment',           'SELECT', 'eventsql_consumer, eventsql_reader'),
            -- Whether a replica has the primary's history.
            ('replicated_incarnation', 'SELECT', 'eventsql_consumer, eventsql_reader'),
            -- Publishing inside a transaction writes to the outbox, and reads nothing of it.
            ('outbox',            'INSERT', 'eventsql_publisher'),
            ('outbox_ring',       'SELECT', 'eventsql_publisher'),
            ('outbox_id',         'USAGE',  'eventsql_publisher'),
            -- The relay takes events out, sends them on, and keeps the tables small.
            ('outbox',            'SELECT, DELETE', 'eventsql_relay'),
            ('outbox_0',          'SELECT, TRUNCATE', 'eventsql_relay'),
            ('outbox_1',          'SELECT, TRUNCATE', 'eventsql_relay'),
            ('outbox_2',          'SELECT, TRUNCATE', 'eventsql_relay'),
            ('outbox_3',          'SELECT, TRUNCATE', 'eventsql_relay'),
            ('outbox_ring',       'SELECT, UPDATE', 'eventsql_relay'),
            ('outbox_transfer',   'SELECT, INSERT, DELETE, TRUNCATE', 'eventsql_relay'),
            ('outbox_transfer_number', 'USAGE', 'eventsql_relay'),
            ('outbox_refused',    'SELECT, INSERT', 'eventsql_relay'),
            ('key_reservation',   'SELECT, DELETE', 'eventsql_relay'),
            ('outbox_relay',      'UPDATE', 'eventsql_relay'),
            -- Scheduled events, which publishers write through a function that runs with the rights of the owner.
            ('scheduled_event',   'SELECT, UPDATE, DELETE', 'eventsql_relay'),
            ('scheduled_event_0', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_1', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_2', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_3', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_4', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_5', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_6', 'SELECT, TRUNCATE', 'eventsql_relay'),
            ('scheduled_event_7', 'SELECT, TRUNCATE', 'eventsql_relay'),
            -- Consumers, their offsets, leases and parked events.
            ('consumer',          'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('consumer_offset',   'SELECT, INSERT, DELETE', 'eventsql_consumer'),
            ('consumer_partition', 'SELECT, INSERT, UPDATE', 'eventsql_consumer'),
            ('consumer_member',   'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('parked_key',        'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('parked_event',      'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('shard_barrier_passed', 'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('consumer_seek',     'SELECT, INSERT, UPDATE, DELETE', 'eventsql_consumer'),
            ('consumer',          'SELECT', 'eventsql_reader'),
            ('consumer_offset',   'SELECT', 'eventsql_reader'),
            ('consumer_partition', 'SELECT', 'eventsql_reader'),
            ('consumer_member',   'SELECT', 'eventsql_reader'),
            ('parked_key',        'SELECT', 'eventsql_reader'),
            ('parked_event',      'SELECT', 'eventsql_reader'),
            ('partition_head',    'SELECT', 'eventsql_consumer, eventsql_reader'),
            ('consumer_lag',      'SELECT', 'eventsql_consumer, eventsql_reader')
        ) AS g (object, privileges, roles)
        WHERE to_regclass('eventsql.' || g.object) IS NOT NULL -- a database that is not a shard has only the outbox
    LOOP
        EXECUTE format('GRANT %s ON eventsql.%I TO %s', grants.privileges, grants.object, grants.roles);
    END LOOP;

    -- Functions that run with the rights of the owner.
    FOR object IN
        SELECT p.oid::regprocedure AS name, r.roles
        FROM (VALUES
            ('append_v1',                'eventsql_publisher, eventsql_relay, eventsql_consumer'), -- dead letters
            ('append_blocks_v1',         'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('require_maps_v1',          'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('add_partitions_v1',        'eventsql_consumer'),                                     -- dead letters
            ('open_partition_v1',        'eventsql_consumer'),                                     -- dead letters
            ('count_seek_v1',            'eventsql_consumer'),
            ('append_expected_v1',       'eventsql_publisher'),
            ('append_sink_v1',           'eventsql_publisher'),                                    -- of Flink
            ('append_counted_v1',        'eventsql_relay'),
            ('publish_counted_v1',       'eventsql_publisher'),                                    -- previous release
            ('publish_counted_v2',       'eventsql_publisher'),
            ('reserved_events_v1',       'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('append_transferred_v1',    'eventsql_relay'),                                        -- previous release
            ('append_transferred_v2',    'eventsql_relay'),
            ('register_outbox_v1',       'eventsql_relay'),
            ('ensure_segments_v1',       'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('erased_offsets_v1',        'eventsql_consumer'),
            ('prepare_fetch_v1',         'eventsql_consumer'),
            ('add_segment_v1',           'eventsql_publisher, eventsql_relay, eventsql_consumer'), -- previous release
            ('delete_dead_producers_v1', 'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            -- Events for later.
            ('schedule_v1',              'eventsql_publisher, eventsql_consumer'),
            ('cancel_scheduled_v1',      'eventsql_publisher, eventsql_consumer'),
            ('scheduled_events_v1',      'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('scheduled_backlog_v1',     'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            -- Retention, as the streams' policies say.
            ('retention_plan_v1',        'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('expire_v1',                'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('segments_to_end_v1',       'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('begin_segment_end_v1',     'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('check_segment_end_v1',     'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('end_segment_v1',           'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('drop_empty_segments_v1',   'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            ('compact_v1',               'eventsql_publisher, eventsql_relay, eventsql_consumer'),
            -- Reading from replicas.
            ('record_incarnation_v1',    'eventsql_consumer, eventsql_reader'),
            -- The state of all consumers, from one process at a time.
            ('report_consumers_v1',      'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader'),
            ('end_report_v1',            'eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader')
        ) AS r (function, roles)
        JOIN pg_catalog.pg_proc p ON p.proname = r.function AND p.pronamespace = schema_oid
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', object.name);
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', object.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', object.name, object.roles);
    END LOOP;

    -- Each stream has an append function, with the owner, the rights and the grants of append_v1.
    IF to_regproc('eventsql.apply_append_grants_v1') IS NOT NULL THEN
        PERFORM eventsql.apply_append_grants_v1();
    END IF;

    -- The others run with the rights of the caller, and two of them tell everybody the incarnation of the database. Default
    -- privileges of the owner may keep them from PUBLIC, also those that are created for streams. Only the owner calls these:
    FOR object IN
        SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = schema_oid AND p.prokind = 'f'
          AND (NOT p.prosecdef OR p.proname IN ('incarnation_v1', 'find_incarnation_v1'))
          AND p.proname !~ '^append_(v2|blocks)_[0-9]+$'
          AND p.proname NOT IN (
              'add_erasure_ranges_v1', 'add_move_v1', 'add_move_v2', 'alter_stream_v1', 'apply_append_grants_v1',
              'apply_latest_view_v1', 'begin_closing_v1', 'begin_closing_v2', 'begin_delete_stream_v1', 'begin_erasure_v1',
              'begin_outbox_erasure_v1', 'cancel_move_v1', 'close_new_stream_v1', 'close_slots_v1',
              'create_append_blocks_function_v1', 'create_append_function_v1', 'create_append_rows_function_v1',
              'create_events_table_v1', 'create_key_reader_v1', 'create_keyed_stream_v1', 'create_partitions_v1',
              'create_stream_v1', 'create_stream_v2', 'create_stream_v3', 'decide_move_v1', 'decide_move_v2',
              'delete_scheduled_v1', 'delete_sink_v1', 'deletion_obstacle_v1', 'drop_deleted_stream_v1', 'drop_fetch_v1',
              'drop_key_reader_v1', 'drop_key_readers_v1', 'erase_outbox_step_v1', 'erase_range_v1', 'erase_step_v1',
              'erasures_v1', 'fence_stream_v1', 'finish_move_v1', 'forget_deleted_stream_v1', 'forget_key_versions_v1',
              'forget_shard_v1', 'forget_stationary_stream_v1', 'freeze_receiver_v1', 'give_to_owner_v1',
              'grant_stream_function_v1', 'grow_stream_v1', 'grow_stream_v2', 'index_keys_of_segment_v1', 'join_move_v1',
              'join_move_v2', 'keep_streams_v1', 'leave_move_v1', 'maintain_append_function_v1', 'open_closed_streams_v1',
              'open_slots_v1', 'outbox_erasure_v1', 'prepare_fetch_blocks_v1', 'prepare_fetch_rows_v1', 'prepare_growth_v1',
              'receive_slots_v1', 'record_partition_homes_v1', 'record_receivers_v1', 'record_stationary_stream_v1',
              'reject_deleted_stream_v1', 'reject_placement_v1', 'reject_unmovable_stream_v1', 'remove_partition_v1',
              'remove_shard_v1', 'rewrite_erased_file_v1', 'rewrite_table_v1', 'slots_of_new_stream_v1')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO eventsql_publisher, eventsql_relay, eventsql_consumer, eventsql_reader',
            object.name);
    END LOOP;
END $$;
