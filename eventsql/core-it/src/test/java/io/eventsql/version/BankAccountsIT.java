package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: the example of docs/expected-versions.md keeps its promise: no account is ever overdrawn, and no transfer is done by half.
 * Method: processes that compete for few accounts, one of which is killed.
 */
class BankAccountsIT {
    private static final long OPENING_BALANCE = 100;
    private static final int EVENTS_MIN = 200;

    @TempDir
    private Path folder;

    @Test
    void withdraw_accountHasTheMoneyOnce_succeedsOnce() {
        try (EventsDb eventsDb = SharedServerDatabase.create();
                HikariDataSource pool = Pools.pool(eventsDb);
                EventSql eventSql = EventSql.builder(pool).build()) {
            BankAccounts.createStreams(eventSql);
            BankAccounts bank = new BankAccounts(eventSql, pool);
            bank.deposit("a", 100);
            assertThat(bank.withdraw("a", 60)).isTrue();
            assertThat(bank.withdraw("a", 60)).isFalse();
            for (int i = 0; i < 60; i++) {
                bank.deposit("a", 1);
                assertThat(bank.withdraw("a", 1)).isTrue();
            }
            assertThat(bank.balance("a")).isEqualTo(40);
            assertThat(eventSql.loadAggregate(BankAccounts.ACCOUNTS, "a", BankAccounts.SNAPSHOTS))
                    .satisfies(account -> {
                        assertThat(account.snapshot()).isPresent();
                        assertThat(account.events()).hasSizeLessThan(60);
                        assertThat(account.version()).isEqualTo(122);
                    });
            assertThat(eventSql.loadAggregate(BankAccounts.ACCOUNTS, "a").events())
                    .hasSize(122);
        }
    }

    @Test
    void accounts_competingProcessesAndAKill_areNeverOverdrawn() throws Exception {
        Random random = Seeds.random("BankAccountsIT");
        try (EventsDb eventsDb = SharedServerDatabase.create();
                HikariDataSource pool = Pools.pool(eventsDb);
                EventSql eventSql = EventSql.builder(pool).build()) {
            BankAccounts.createStreams(eventSql);
            BankAccounts bank = new BankAccounts(eventSql, pool);
            for (int i = 0; i < BankProcess.ACCOUNTS; i++) {
                bank.deposit("account-" + i, OPENING_BALANCE);
            }
            List<ChildProcess> processes = new ArrayList<>();
            try {
                for (int i = 0; i < 2; i++) {
                    processes.add(start(eventsDb, random));
                }
                for (ChildProcess process : processes) {
                    process.awaitLine("READY");
                }
                awaitEvents(eventsDb, EVENTS_MIN / 2);
                processes.removeFirst().kill();
                awaitEvents(eventsDb, EVENTS_MIN);
                for (ChildProcess process : processes) {
                    process.finish();
                }
            } finally {
                processes.forEach(ChildProcess::close);
            }
            Outbox outbox = eventSql.outbox();
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> outbox.backlogs().getFirst().events() == 0);
            verify(eventsDb, bank);
        }
    }

    private ChildProcess start(EventsDb eventsDb, Random random) throws Exception {
        return new ChildProcess(
                folder,
                BankProcess.class,
                List.of(
                        eventsDb.jdbcUrl(),
                        eventsDb.username(),
                        eventsDb.password(),
                        Long.toString(random.nextLong())));
    }

    private static List<Ledger.Stored> read(EventsDb eventsDb) throws Exception {
        return Ledger.read(BankAccounts.ACCOUNTS, List.of(eventsDb.dataSource()));
    }

    private static void awaitEvents(EventsDb eventsDb, int events) {
        await().atMost(Duration.ofSeconds(120)).until(() -> read(eventsDb).size() >= events);
    }

    private static void verify(EventsDb eventsDb, BankAccounts bank) throws Exception {
        List<Ledger.Stored> stored = read(eventsDb);
        Map<String, Long> balances = new HashMap<>();
        for (Ledger.Stored event : stored) {
            long balance = balances.merge(String.valueOf(event.key()), Long.parseLong(event.value()), Long::sum);
            assertThat(balance)
                    .as("balance of %s after %s", event.key(), event.value())
                    .isNotNegative();
        }
        balances.forEach((account, balance) -> assertThat(bank.balance(account)).isEqualTo(balance));
        // What a killed process has withdrawn and not deposited again, by each of its threads, is missing at most.
        long total = balances.values().stream().mapToLong(Long::longValue).sum();
        assertThat(total)
                .isBetween(BankProcess.ACCOUNTS * OPENING_BALANCE - 3 * 50, BankProcess.ACCOUNTS * OPENING_BALANCE);
        System.out.println(stored.size() + " events, balances " + balances);
    }
}
