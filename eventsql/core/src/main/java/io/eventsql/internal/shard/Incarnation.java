package io.eventsql.internal.shard;

import io.eventsql.internal.sql.NotSentException;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The incarnation of a shard's database to which everything belongs that this process remembers of it. Statements that
 * depend on something remembered pass the incarnation to the database, which rejects them ({@link
 * SqlErrors#OTHER_INCARNATION}) if it has another one, because it was restarted, failed over or was restored. Then {@link
 * #recheck} compares what is remembered with what is stored. Thread-safe.
 */
final class Incarnation {
    private static final Logger LOG = LoggerFactory.getLogger(Incarnation.class);

    private final Shard shard;
    private final List<Anchors> anchors = new CopyOnWriteArrayList<>();
    /** Held while the database is compared: other threads, whose statements are rejected, wait for the result. */
    private final ReentrantLock comparing = new ReentrantLock();

    /** What is lost, and not reported yet: kept while a later comparison fails. Guarded by {@link #comparing}. */
    private final List<Runnable> reports = new ArrayList<>();

    /** The files that the schema of a restored database lacks, as last reported. Guarded by {@link #comparing}. */
    private String reportedSchema = "";

    private volatile @Nullable String known;

    Incarnation(Shard shard) {
        this.shard = shard;
    }

    void add(Anchors more) {
        anchors.add(more);
    }

    /** Forgets what is remembered of a stream that this process has deleted. */
    void forget(String stream) {
        anchors.forEach(each -> each.forget(stream));
    }

    /** Sets the incarnation that the database had when it was reached for the first time. */
    void begin(String incarnation) {
        known = incarnation;
    }

    /**
     * Returns the incarnation. Read it before the ids that a statement depends on.
     *
     * @throws NotSentException if the database is not open
     */
    String current() throws NotSentException {
        String current = known;
        if (current == null) {
            throw shard.notOpen();
        }
        return current;
    }

    /**
     * Finds out the incarnation after the database has rejected a statement, and compares everything remembered with it,
     * unless another thread has done so.
     *
     * @param rejected the incarnation passed to the rejected statement
     * @throws SQLException if the database is unavailable, in recovery, being restored, or was restored to a schema that is too
     *     old; repeat the call later
     */
    void recheck(String rejected) throws SQLException {
        List<Runnable> complete;
        comparing.lock();
        try {
            if (!rejected.equals(known)) {
                return;
            }
            String found =
                    shard.require().call(c -> shard.tables().incarnations().findOnPrimary(c));
            if (found.equals(rejected)) {
                return; // such as behind an address that still leads to two servers
            }
            requireSchema();
            shard.streams().forgetAll();
            for (Anchors each : anchors) {
                reports.add(each.compare(shard));
            }
            known = found;
            complete = List.copyOf(reports);
            reports.clear();
            LOG.info(
                    "Shard {} was restarted, failed over or was restored: incarnation {} instead of {}. Its ids are read"
                            + " again, and its partitions are taken anew",
                    shard,
                    found,
                    rejected);
        } finally {
            comparing.unlock();
        }
        complete.forEach(Runnable::run); // without the lock, because they call listeners of the application
    }

    /**
     * Checks that the database was not restored from a backup that is older than the last migration. It is not migrated here: a
     * restore may still be in progress, and would meet what the migration has created.
     *
     * @throws NotSentException if it was: the shard stays unavailable, because its statements pass the former incarnation
     */
    private void requireSchema() throws SQLException {
        List<String> missing = shard.missingFiles();
        if (missing.isEmpty()) {
            reportedSchema = "";
            return;
        }
        String files = String.join(", ", missing);
        if (!files.equals(reportedSchema)) {
            reportedSchema = files;
            LOG.error(
                    "Shard {} was restored, and its schema lacks {}: this process does not use it until they are applied. When"
                            + " the restore is complete, apply them, or restart one instance with settings.migrateSchema",
                    shard,
                    files);
        }
        throw new NotSentException("shard " + shard + " was restored, and its schema lacks " + files);
    }
}
