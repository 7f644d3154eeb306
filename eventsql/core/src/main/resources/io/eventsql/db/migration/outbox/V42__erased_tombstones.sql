-- EventSQL: a refused tombstone that is retried while its key is being erased keeps no headers.

INSERT INTO eventsql.schema_version (version, description) VALUES (42, 'erased tombstones');

DO $$
DECLARE
    former     CONSTANT text := 't.stream, t.key, t.value, t.headers, 0' || chr(10);
    latter     CONSTANT text := 't.stream, t.key, t.value,' || chr(10)
        || '           CASE WHEN t.value IS NULL AND EXISTS (' || chr(10)
        || '               SELECT FROM eventsql.outbox_erasure e' || chr(10)
        || '               WHERE e.phase IN (''outbox'', ''transfer'', ''refused'') AND e.stream = t.stream AND e.key = t.key' || chr(10)
        || '                 AND t.written_at <= e.started_at) THEN NULL ELSE t.headers END, 0' || chr(10);
    definition text := pg_get_functiondef('eventsql.retry_refused_events'::regproc);
BEGIN
    IF strpos(definition, former) = 0 THEN
        RAISE EXCEPTION 'retry_refused_events is not the one of an earlier version';
    END IF;
    EXECUTE replace(definition, former, latter);
END $$;
