package io.eventsql.runner.drivers;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.BusinessTransactions;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PublishTarget;
import java.util.HashMap;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * {@code spring-transactions}: each call is a transaction of Spring that writes a business row and publishes its events.
 * With the option {@code writes: rows} it inserts them into a plain table instead, so that nothing arrives in the stream.
 */
public final class SpringTransactionsDriverProvider implements DriverProvider {
    private static final String WRITES = "writes";

    @Override
    public String name() {
        return "spring-transactions";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new EventSqlOutboxDriverProvider().guarantees(environment);
    }

    @Override
    public Driver open(DriverSettings settings) {
        Map<String, String> options = new HashMap<>(settings.options());
        String writes = options.getOrDefault(WRITES, "events");
        if (!writes.equals("events") && !writes.equals("rows")) {
            throw new IllegalArgumentException(
                    "driver_options." + WRITES + " must be events or rows, but is '" + writes + "'");
        }
        options.remove(WRITES);
        BusinessTransactions transactions = ServiceLoader.load(BusinessTransactions.class)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("Transactions of Spring are not on the class path"));
        DriverSettings ofLibrary = new DriverSettings(options, settings.environment());
        return new SpringDriver(ofLibrary, transactions, writes.equals("rows"));
    }

    /** Publishes in transactions of Spring. Thread-safe. */
    private static final class SpringDriver extends EventSqlDriver {
        private final BusinessTransactions.Targets targets;
        private final boolean writesRows;

        SpringDriver(DriverSettings settings, BusinessTransactions transactions, boolean writesRows) {
            super(settings);
            this.targets = transactions.open(eventSql(), dataSources().getFirst(), BenchmarkEvent.randomRun());
            this.writesRows = writesRows;
        }

        @Override
        public PublishTarget publisher(String stream) {
            return writesRows ? targets.plainRow(stream) : targets.publishing(stream);
        }
    }
}
