package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ParkedEventTable;
import io.eventsql.internal.sql.ParkedEventTable.Row;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has events that were set aside handled again, in their order, by the partition's holder and between its pages: so
 * nothing is parked behind its back. An event that succeeds is no longer set aside; one that fails stays, and with it
 * all later ones of its parked key.
 */
final class Redrive {
    private static final Logger LOG = LoggerFactory.getLogger(Redrive.class);
    private static final int PAGE = 100;

    private final Attempts attempts;
    private final Failures failures;

    Redrive(Attempts attempts, Failures failures) {
        this.attempts = attempts;
        this.failures = failures;
    }

    /** Handles a page of what is to be handled again. */
    void run(ShardMember member, OwnedPartition partition, HandlerClock clock) {
        Shard shard = member.shard();
        ParkedEventTable table = shard.tables().parkedEvents();
        List<Row> rows;
        try {
            rows = shard.require().call(c -> table.toRedrive(c, member.consumerId(), partition.partition(), PAGE));
        } catch (SQLException e) {
            LOG.warn("Events of {} are redriven later: {}", member.name(partition), e.toString());
            return; // the next heartbeat asks again
        }
        Set<String> failedKeys = new HashSet<>();
        for (Row row : rows) {
            boolean waits = row.deadLetterOffset() == null && failedKeys.contains(row.key());
            boolean goesOn = waits || redrive(member, partition, row, clock, failedKeys);
            if (!goesOn) {
                return;
            }
        }
        freeKeys(member, partition);
        if (rows.size() == PAGE) {
            partition.wantRedrive();
        }
    }

    private boolean redrive(
            ShardMember member, OwnedPartition partition, Row row, HandlerClock clock, Set<String> failedKeys) {
        ParkedEventTable table = member.shard().tables().parkedEvents();
        HandlerCall.Step remove = connection -> {
            if (!table.remove(connection, member.consumerId(), partition.partition(), row.offset())) {
                throw new SQLException("the event is no longer set aside", SqlErrors.NOT_PARKED);
            }
        };
        return attempts.handle(member, partition, List.of(event(member, row)), clock, remove, new Attempts.End() {
            @Override
            public boolean handled(StoredEvent first, StoredEvent last) {
                return failures.commitWith(
                        member,
                        partition,
                        connection ->
                                table.remove(connection, member.consumerId(), partition.partition(), row.offset()));
            }

            @Override
            public boolean failed(StoredEvent event, int count, Throwable error) {
                if (row.deadLetterOffset() == null && row.key() != null) {
                    failedKeys.add(row.key());
                }
                return failures.commitWith(
                        member,
                        partition,
                        connection -> table.failedAgain(
                                connection,
                                member.consumerId(),
                                partition.partition(),
                                row,
                                Failures.text(error),
                                count));
            }
        });
    }

    private void freeKeys(ShardMember member, OwnedPartition partition) {
        List<String> freed = new ArrayList<>();
        boolean committed = failures.commitWith(member, partition, connection -> {
            freed.clear();
            freed.addAll(member.shard()
                    .tables()
                    .parkedEvents()
                    .freeKeys(connection, member.consumerId(), partition.partition()));
        });
        if (committed) {
            partition.freed(freed);
        }
    }

    private static StoredEvent event(ShardMember member, Row row) {
        return new StoredEvent(
                new EventPosition(member.spec().stream(), member.shard().number(), row.partition(), row.offset()),
                row.key(),
                row.value(),
                row.headers(),
                row.publishedAt());
    }
}
