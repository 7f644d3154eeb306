-- EventSQL: segments are vacuumed and frozen while they grow (decision 55).

INSERT INTO eventsql.schema_version (version, description) VALUES (37, 'frozen segments');

-- As in version 19 and 24, but new segments are vacuumed after 10,000 events or 400 blocks and a tenth of those that they have, and
-- all that a vacuum finds is frozen. A page that changed since the last checkpoint is frozen by a short WAL record, any other by a
-- copy of the page. They are still analyzed after 500,000 events or 20,000 blocks. Existing segments keep their options.
DO $$
DECLARE
    change     record;
    definition text;
    changed    text;
BEGIN
    FOR change IN
        SELECT * FROM (VALUES
            ('create_segment_v1', 'statistics; by default autovacuum would read a growing segment again and again (decision 10).',
             'statistics: they are analyzed rarely. But vacuumed and frozen while they grow (decision 55).'),
            ('create_segment_v1', 'many_rows, many_rows', 'many_rows / 50, many_rows'),
            ('create_segment_v1', 'autovacuum_vacuum_insert_scale_factor = 0.5,',
             'autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_freeze_min_age = 0,'),
            -- The table of a rewritten segment is full when it is created: the vacuum that follows freezes all of it.
            ('replace_segments_v1',
             'autovacuum_vacuum_insert_threshold = 500000, autovacuum_vacuum_insert_scale_factor = 0.5,',
             'autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_freeze_min_age = 0,')
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
