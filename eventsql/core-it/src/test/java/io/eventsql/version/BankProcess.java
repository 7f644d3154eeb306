package io.eventsql.version;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.fixture.Pools;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * The main class of a bank. Prints {@code READY}, moves and withdraws money until the end of its standard input, then prints {@code
 * DONE}; it may be killed at any moment.
 */
public final class BankProcess {
    static final int ACCOUNTS = 4;
    private static final int THREADS = 3;
    private static volatile boolean stopped;

    private BankProcess() {}

    /** Arguments: JDBC URL, user, password, seed. */
    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[3]));
        try (HikariDataSource pool =
                        Pools.pool(args[0], args[1], args[2], config -> config.setConnectionTimeout(30_000));
                EventSql eventSql = EventSql.builder(pool).build()) {
            BankAccounts bank = new BankAccounts(eventSql, pool);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Random own = new Random(random.nextLong());
                threads.add(Thread.ofVirtual().start(() -> work(bank, own)));
            }
            System.out.println("READY");
            while (System.in.read() >= 0) {
                continue;
            }
            stopped = true;
            for (Thread thread : threads) {
                thread.join();
            }
            eventSql.close(Duration.ofSeconds(10));
            System.out.println("DONE");
        }
    }

    private static void work(BankAccounts bank, Random random) {
        try {
            while (!stopped) {
                String from = "account-" + random.nextInt(ACCOUNTS);
                String to = "account-" + random.nextInt(ACCOUNTS);
                long amount = 1 + random.nextInt(50);
                if (random.nextInt(3) == 0) {
                    if (bank.withdraw(from, amount)) {
                        bank.deposit(from, amount);
                    }
                } else if (!from.equals(to)) {
                    bank.transfer(from, to, amount);
                }
            }
        } catch (Throwable e) { // without DONE the test fails with what this prints
            e.printStackTrace();
            System.exit(1);
        }
    }
}
