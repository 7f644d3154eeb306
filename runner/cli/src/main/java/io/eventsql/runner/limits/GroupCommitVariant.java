package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** One event per call through {@link GroupCommit}, with a consumer; the rate is that of the consumer. */
final class GroupCommitVariant implements Variant {
    private final LimitsContext context;
    private final int callers;
    private final GroupCommit.Tables tables;

    private GroupCommitVariant(LimitsContext context, int callers, GroupCommit.Tables tables) {
        this.context = context;
        this.callers = callers;
        this.tables = tables;
    }

    /** Creates the tables. Those of the events are segments of a stream, which is otherwise unused. */
    static GroupCommitVariant create(LimitsContext context, int callers, int connections) throws SQLException {
        String stream = context.stream("group_commit_" + connections);
        context.eventSql()
                .createStream(
                        StreamSpec.of(stream).withPartitions(connections).withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        StreamLog log = new StreamLog(context.dataSource(), stream);
        List<String> names = new ArrayList<>();
        for (int partition = 0; partition < connections; partition++) {
            names.add(log.firstSegment(partition));
        }
        GroupCommit.Tables tables = new GroupCommit.Tables(names, stream + "_head", stream + "_offset");
        try (Connection connection = context.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            for (String table : List.of(tables.heads(), tables.offsets())) {
                statement.execute("CREATE TABLE " + table
                        + " (partition int PRIMARY KEY, next_offset bigint NOT NULL) WITH (fillfactor = 50)");
                statement.execute("INSERT INTO " + table + " SELECT generate_series(0, " + (connections - 1) + "), 0");
            }
        }
        return new GroupCommitVariant(context, callers, tables);
    }

    @Override
    public String name() {
        int connections = tables.segments().size();
        return "bare group commit, " + connections + (connections == 1 ? " connection" : " connections");
    }

    @Override
    public MeasuredInterval run(Duration time) throws SQLException {
        ConsumedEvents consumed = new ConsumedEvents(context);
        try (GroupCommit target = GroupCommit.start(context, tables, consumed)) {
            PublishVariant publish = PublishVariant.named(name(), context.load(target, 1, List.of()), callers);
            long start = context.clock().nanos();
            MeasuredInterval published = publish.run(time);
            long end = consumed.await(published.events());
            return new MeasuredInterval(published.events(), published.calls(), end - start);
        }
    }
}
