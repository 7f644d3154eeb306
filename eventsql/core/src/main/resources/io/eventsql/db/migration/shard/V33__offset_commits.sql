-- EventSQL: the members of a process commit their offsets together (decision 49).

INSERT INTO eventsql.schema_version (version, description) VALUES (33, 'offset commits');

-- Commits offsets of several consumers, each only if epoch and previous offset are still the given ones. Returns the partitions that
-- were committed; the others were lost to another member. Two commits of one partition meet at the DELETE: the second finds no row.
--
-- p_consumer_ids, p_partitions, p_epochs, p_from_offsets, p_to_offsets, p_events: one element for each partition; the last is the
-- number of events between the two offsets, which is less than their difference where events are missing from the log.
--
-- Index: consumer_offset_newest. Locks the deleted rows, in the order of the consumers and partitions.
--
-- Errors: ES011 the database has another incarnation than p_incarnation; 55P03 a commit of one of the partitions did not end in 2 s: it
-- may wait for synchronous replicas. An error of one partition is that of the statement.
CREATE FUNCTION eventsql.commit_offsets_v2(
    p_incarnation text, p_consumer_ids int[], p_partitions int[], p_epochs bigint[], p_from_offsets bigint[],
    p_to_offsets bigint[], p_events bigint[])
RETURNS TABLE (consumer_id int, partition int)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
BEGIN
    IF p_incarnation <> coalesce(eventsql.incarnation_v1(), '') THEN
        PERFORM eventsql.reject_incarnation_v1(p_incarnation);
    END IF;
    RETURN QUERY
    WITH requested AS MATERIALIZED (
        SELECT * FROM unnest(p_consumer_ids, p_partitions, p_epochs, p_from_offsets, p_to_offsets, p_events)
            AS r (consumer_id, partition, epoch, from_offset, to_offset, events)
        ORDER BY 1, 2
    ), newest AS MATERIALIZED (
        SELECT r.*, o.*
        FROM requested r
        CROSS JOIN LATERAL (
            SELECT n.ctid AS tid, n.commit_number, n.next_offset AS stored_offset, n.epoch AS stored_epoch
            FROM eventsql.consumer_offset n
            WHERE n.consumer_id = r.consumer_id AND n.partition = r.partition
            ORDER BY n.commit_number DESC LIMIT 1) o
        WHERE o.stored_epoch = r.epoch AND o.stored_offset = r.from_offset
    ), former AS (
        DELETE FROM eventsql.consumer_offset o
        USING newest n
        WHERE o.ctid = n.tid AND o.consumer_id = n.consumer_id AND o.partition = n.partition
          AND o.commit_number = n.commit_number
        RETURNING o.consumer_id, o.partition, o.commit_number, o.epoch, o.consumed_events, n.events, n.to_offset
    )
    INSERT INTO eventsql.consumer_offset AS inserted
        (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)
    SELECT f.consumer_id, f.partition, f.commit_number + 1, f.to_offset, f.epoch, f.consumed_events + f.events, clock_timestamp()
    FROM former f
    RETURNING inserted.consumer_id, inserted.partition;
END $$;

-- As in version 5: for the partitions of one consumer.
CREATE OR REPLACE FUNCTION eventsql.commit_offsets_v1(
    p_incarnation text, p_consumer_id int, p_partitions int[], p_epochs bigint[], p_from_offsets bigint[],
    p_to_offsets bigint[], p_events bigint[])
RETURNS SETOF int
LANGUAGE plpgsql -- with the settings of commit_offsets_v2
AS $$
BEGIN
    RETURN QUERY
    SELECT c.partition
    FROM eventsql.commit_offsets_v2(
        p_incarnation, array_fill(p_consumer_id, ARRAY[cardinality(p_partitions)]), p_partitions, p_epochs, p_from_offsets,
        p_to_offsets, p_events) c;
END $$;
