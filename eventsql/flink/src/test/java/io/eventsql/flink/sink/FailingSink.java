package io.eventsql.flink.sink;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** The sink, but it fails once at each step of the two-phase commit that has events. */
final class FailingSink implements Sink<String>, SupportsCommitter<EventBatch> {
    private static final long serialVersionUID = 1L;

    /** The steps at which it has yet to fail. */
    static final Set<Step> STEPS = ConcurrentHashMap.newKeySet();

    private final EventSqlSink<String> sink;

    FailingSink(EventSqlSink<String> sink) {
        this.sink = sink;
    }

    enum Step {
        BEFORE_PREPARE,
        AFTER_PREPARE,
        BEFORE_COMMIT,
        DURING_COMMIT,
        AFTER_COMMIT
    }

    private static void failAt(Step step) throws IOException {
        if (STEPS.remove(step)) {
            throw new IOException("fails for the test " + step);
        }
    }

    @Override
    public SinkWriter<String> createWriter(WriterInitContext context) throws IOException {
        return new FailingWriter((CommittingWriter<String>) sink.createWriter(context));
    }

    private static final class FailingWriter implements CommittingSinkWriter<String, EventBatch> {
        private final CommittingWriter<String> writer;
        private boolean hasEvents;

        FailingWriter(CommittingWriter<String> writer) {
            this.writer = writer;
        }

        @Override
        public void write(String record, Context context) throws IOException {
            hasEvents = true;
            writer.write(record, context);
        }

        @Override
        public void flush(boolean endOfInput) {
            writer.flush(endOfInput);
        }

        @Override
        public Collection<EventBatch> prepareCommit() throws IOException {
            if (!hasEvents) {
                return writer.prepareCommit();
            }
            failAt(Step.BEFORE_PREPARE);
            Collection<EventBatch> batches = writer.prepareCommit();
            failAt(Step.AFTER_PREPARE);
            return batches;
        }

        @Override
        public void close() {
            writer.close();
        }
    }

    @Override
    public Committer<EventBatch> createCommitter(CommitterInitContext context) {
        return new FailingCommitter(sink.createCommitter(context));
    }

    private static final class FailingCommitter implements Committer<EventBatch> {
        private final Committer<EventBatch> committer;

        FailingCommitter(Committer<EventBatch> committer) {
            this.committer = committer;
        }

        @Override
        public void commit(Collection<CommitRequest<EventBatch>> requests) throws IOException, InterruptedException {
            if (requests.isEmpty()) {
                return;
            }
            failAt(Step.BEFORE_COMMIT);
            if (STEPS.contains(Step.DURING_COMMIT) && requests.size() > 1) {
                committer.commit(List.copyOf(requests).subList(0, requests.size() / 2));
                failAt(Step.DURING_COMMIT);
            }
            committer.commit(requests);
            failAt(Step.AFTER_COMMIT);
        }

        @Override
        public void close() throws Exception {
            committer.close();
        }
    }

    @Override
    public SimpleVersionedSerializer<EventBatch> getCommittableSerializer() {
        return sink.getCommittableSerializer();
    }
}
