-- EventSQL: a connection plans a heartbeat once.

INSERT INTO eventsql.schema_version (version, description) VALUES (48, 'plans of heartbeats');

SET LOCAL lock_timeout = '3s';

-- Without it, PostgreSQL plans their statements anew for each call, because it estimates fewer rows for its arrays than for unknown ones.
ALTER FUNCTION eventsql.heartbeat_v1 SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION eventsql.bound_leases_v1 SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION eventsql.parked_keys_v1 SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION eventsql.used_before_move_v1 SET plan_cache_mode = force_generic_plan;

DO $$
BEGIN
    PERFORM eventsql.give_to_owner_v1();
END $$;
