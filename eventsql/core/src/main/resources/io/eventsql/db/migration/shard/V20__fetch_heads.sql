-- EventSQL: fetch functions that read a head only where there is something new.

INSERT INTO eventsql.schema_version (version, description) VALUES (20, 'fetch heads');

-- The functions that prepare fetches are those of versions 18 and 19 but for one condition in the functions they create: a
-- head that is not beyond the requested offset is not found. PostgreSQL reads all entries of the head's partition in a page of
-- the index, also dead ones, unless a condition ends its scan. For most partitions of a fetch nothing is new, and then it ends
-- at once.
--
-- An existing fetch function is replaced the next time a member prepares it.
DO $$
DECLARE
    generator  regprocedure;
    definition text;
    bounded    text;
BEGIN
    FOREACH generator IN ARRAY ARRAY[
        'eventsql.prepare_fetch_rows_v1(int)'::regprocedure, 'eventsql.prepare_fetch_blocks_v1(int)'::regprocedure]
    LOOP
        definition := pg_get_functiondef(generator);
        bounded := replace(definition,
            'WHERE b.stream_id = p_stream_id AND b.partition = r.partition',
            'WHERE b.stream_id = p_stream_id AND b.partition = r.partition AND b.next_offset > r.from_offset');
        IF bounded = definition THEN
            RAISE EXCEPTION '% is not that of version 18 or 19', generator;
        END IF;
        EXECUTE bounded;
    END LOOP;
END $$;
