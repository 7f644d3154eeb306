package io.eventsql.flink.sink;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.connector.sink2.Committer;

/**
 * Appends the batches of a checkpoint that is complete, after a restart again. It returns when all are stored, so no batch of a
 * later checkpoint is appended before.
 */
final class BatchCommitter implements Committer<EventBatch> {
    private final BatchAppender appender;

    BatchCommitter(BatchAppender appender) {
        this.appender = appender;
    }

    @Override
    public void commit(Collection<CommitRequest<EventBatch>> requests) throws IOException, InterruptedException {
        List<EventBatch> batches =
                requests.stream().map(CommitRequest::getCommittable).toList();
        appender.append(batches);
    }

    @Override
    public void close() {
        appender.close();
    }
}
