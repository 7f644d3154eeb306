package io.eventsql.internal.shard;

import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.BlockAppendStatement;
import io.eventsql.internal.sql.ClearStatements;
import io.eventsql.internal.sql.CompactionFunctions;
import io.eventsql.internal.sql.ConsumerStatusFunctions;
import io.eventsql.internal.sql.ConsumerTable;
import io.eventsql.internal.sql.DeleteStatements;
import io.eventsql.internal.sql.ErasureTable;
import io.eventsql.internal.sql.ExpectedAppendStatement;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.GrowthFunctions;
import io.eventsql.internal.sql.IncarnationTable;
import io.eventsql.internal.sql.KeyFunctions;
import io.eventsql.internal.sql.LatestFunction;
import io.eventsql.internal.sql.LeaseTable;
import io.eventsql.internal.sql.MoveFunctions;
import io.eventsql.internal.sql.Notifications;
import io.eventsql.internal.sql.OffsetTable;
import io.eventsql.internal.sql.ParkedEventTable;
import io.eventsql.internal.sql.PartitionTable;
import io.eventsql.internal.sql.ReplicaTable;
import io.eventsql.internal.sql.RetentionFunctions;
import io.eventsql.internal.sql.SegmentTable;
import io.eventsql.internal.sql.ShardBarrierTable;
import io.eventsql.internal.sql.ShardTable;
import io.eventsql.internal.sql.SqlSchema;
import io.eventsql.internal.sql.StreamTable;
import io.eventsql.internal.sql.StreamsFetchStatement;

/** All statements, written for one schema. */
public record Tables(
        IncarnationTable incarnations,
        ShardTable shards,
        AppendStatement append,
        BlockAppendStatement appendBlocks,
        ExpectedAppendStatement appendExpected,
        FetchStatement fetch,
        StreamsFetchStatement streamsFetch,
        StreamTable streams,
        PartitionTable partitions,
        GrowthFunctions growth,
        MoveFunctions moves,
        ShardBarrierTable shardBarriers,
        SegmentTable segments,
        RetentionFunctions retention,
        CompactionFunctions compaction,
        ConsumerTable consumers,
        ConsumerStatusFunctions consumerStatus,
        OffsetTable offsets,
        LeaseTable leases,
        ParkedEventTable parkedEvents,
        ClearStatements clearing,
        DeleteStatements deleting,
        ErasureTable erasures,
        LatestFunction latest,
        KeyFunctions keys,
        Notifications notifications,
        ReplicaTable replicas,
        OutboxTables outbox) {

    public static Tables in(SqlSchema schema) {
        return new Tables(
                new IncarnationTable(schema),
                new ShardTable(schema),
                new AppendStatement(schema),
                new BlockAppendStatement(schema),
                new ExpectedAppendStatement(schema),
                new FetchStatement(schema),
                new StreamsFetchStatement(schema),
                new StreamTable(schema),
                new PartitionTable(schema),
                new GrowthFunctions(schema),
                new MoveFunctions(schema),
                new ShardBarrierTable(schema),
                new SegmentTable(schema),
                new RetentionFunctions(schema),
                new CompactionFunctions(schema),
                new ConsumerTable(schema),
                new ConsumerStatusFunctions(schema),
                new OffsetTable(schema),
                new LeaseTable(schema),
                new ParkedEventTable(schema),
                new ClearStatements(schema),
                new DeleteStatements(schema),
                new ErasureTable(schema),
                new LatestFunction(schema),
                new KeyFunctions(schema),
                new Notifications(schema),
                new ReplicaTable(schema),
                OutboxTables.in(schema));
    }
}
