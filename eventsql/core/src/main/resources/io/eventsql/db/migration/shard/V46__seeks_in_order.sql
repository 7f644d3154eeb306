-- EventSQL: a seek over several shards holds back only partitions that received keys after those that it moves.

INSERT INTO eventsql.schema_version (version, description) VALUES (46, 'seeks in order');

SET LOCAL lock_timeout = '3s';

-- Holds a consumer back, because it is going to be moved on other shards, in partitions that received keys by slot maps up to
-- p_map_version: what was reported of these shards counts no more in partitions that received theirs by later ones, unless it is read
-- after p_seeks moves. Takes the partitions that are held back then from their members.
--
-- Indexes: the primary keys. Locks the consumer's row, then those of its partitions, in their order.
CREATE FUNCTION eventsql.hold_receivers_v2(p_consumer_id int, p_givers int[], p_seeks bigint[], p_map_version int) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '5s'
AS $$
BEGIN
    PERFORM FROM eventsql.consumer c WHERE c.consumer_id = p_consumer_id FOR NO KEY UPDATE;
    PERFORM FROM eventsql.consumer_partition p
    WHERE p.consumer_id = p_consumer_id ORDER BY p.partition FOR NO KEY UPDATE;
    INSERT INTO eventsql.consumer_seek AS k (consumer_id, shard, seeks)
    SELECT p_consumer_id, g.giver, g.seeks FROM unnest(p_givers, p_seeks) AS g (giver, seeks)
    ON CONFLICT (consumer_id, shard) DO UPDATE SET seeks = greatest(k.seeks, excluded.seeks);
    DELETE FROM eventsql.shard_barrier_passed d
    WHERE d.consumer_id = p_consumer_id AND d.giver = ANY (p_givers) AND d.map_version > p_map_version;
    PERFORM eventsql.free_partition_v1(p_consumer_id, o.partition, NULL)
    FROM (
        SELECT p.partition
        FROM eventsql.consumer_partition p
        WHERE p.consumer_id = p_consumer_id AND p.member_id IS NOT NULL
          AND p.partition IN (SELECT h.partition FROM eventsql.held_partitions_v1(p_consumer_id) h)
        ORDER BY p.partition OFFSET 0) o;
END $$;

-- As in version 35.
CREATE OR REPLACE FUNCTION eventsql.hold_receivers_v1(p_consumer_id int, p_givers int[], p_seeks bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM eventsql.hold_receivers_v2(p_consumer_id, p_givers, p_seeks, 0);
END $$;

DO $$
BEGIN
    PERFORM eventsql.grant_stream_function_v1('eventsql.hold_receivers_v2(int, int[], bigint[], int)');
    PERFORM eventsql.give_to_owner_v1();
END $$;
