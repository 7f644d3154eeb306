package io.eventsql.version;

import io.eventsql.Aggregate;
import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;

/**
 * The example of docs/expected-versions.md: accounts whose state is the sum of their events, and whose balance is never negative,
 * however many processes use them.
 */
final class BankAccounts {
    static final String ACCOUNTS = "accounts";
    static final String SNAPSHOTS = "account-snapshots";
    private static final int EVENTS_PER_SNAPSHOT = 50;
    private static final String REQUEST = "request";

    private final EventSql eventSql;
    private final DataSource dataSource;

    BankAccounts(EventSql eventSql, DataSource dataSource) {
        this.eventSql = eventSql;
        this.dataSource = dataSource;
    }

    static void createStreams(EventSql eventSql) {
        eventSql.createStream(StreamSpec.of(ACCOUNTS).withPartitions(2).withKeyIndex());
        eventSql.createStream(StreamSpec.of(SNAPSHOTS).withPartitions(2).withCompaction(Compaction.DEFAULT));
    }

    private Aggregate load(String account) {
        return eventSql.loadAggregate(ACCOUNTS, account, SNAPSHOTS);
    }

    private static long balance(Aggregate account) {
        long balance = account.snapshot().map(s -> Long.parseLong(s.text())).orElse(0L);
        for (StoredEvent event : account.events()) {
            balance += Long.parseLong(event.text());
        }
        return balance;
    }

    long balance(String account) {
        return balance(load(account));
    }

    /** Returns whether the account had the money. */
    boolean withdraw(String account, long amount) {
        String request = UUID.randomUUID().toString();
        while (true) {
            Aggregate loaded = load(account);
            if (contains(loaded, request)) {
                return true; // an attempt whose outcome was unknown
            }
            if (balance(loaded) < amount) {
                return false;
            }
            Event withdrawn = Event.ofText(account, "-" + amount).withHeader(REQUEST, request);
            try {
                eventSql.publisher().publish(ACCOUNTS, withdrawn, ExpectedVersion.of(loaded.version()));
                saveSnapshot(loaded);
                return true;
            } catch (VersionConflictException | EventOutcomeUnknownException e) {
                continue; // load the account again and decide anew
            }
        }
    }

    private static boolean contains(Aggregate account, String request) {
        return account.events().stream()
                .anyMatch(event -> request.equals(event.headers().get(REQUEST)));
    }

    private void saveSnapshot(Aggregate account) {
        if (account.events().size() >= EVENTS_PER_SNAPSHOT) {
            byte[] balance = Long.toString(balance(account)).getBytes(StandardCharsets.UTF_8);
            eventSql.publisher().publish(SNAPSHOTS, account.newSnapshot(balance));
        }
    }

    void deposit(String account, long amount) {
        eventSql.publisher().publish(ACCOUNTS, Event.ofText(account, "+" + amount));
    }

    /** Both accounts are changed or none; returns whether the first one had the money. */
    boolean transfer(String from, String to, long amount) throws SQLException {
        while (true) {
            Aggregate payer = load(from);
            Aggregate payee = load(to);
            if (balance(payer) < amount) {
                return false;
            }
            try (Connection transaction = dataSource.getConnection()) {
                transaction.setAutoCommit(false);
                for (Aggregate account : inLockOrder(payer, payee)) {
                    String change = (account == payer ? "-" : "+") + amount;
                    eventSql.outbox()
                            .publish(
                                    transaction,
                                    ACCOUNTS,
                                    Event.ofText(account.key(), change),
                                    ExpectedVersion.of(account.version()));
                }
                transaction.commit();
                return true;
            } catch (VersionConflictException e) {
                continue; // closing the connection has rolled back
            }
        }
    }

    /** Two transactions that lock the same accounts in another order would deadlock. */
    private static List<Aggregate> inLockOrder(Aggregate one, Aggregate other) {
        return one.key().compareTo(other.key()) < 0 ? List.of(one, other) : List.of(other, one);
    }
}
