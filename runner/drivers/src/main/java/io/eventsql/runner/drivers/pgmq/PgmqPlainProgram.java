package io.eventsql.runner.drivers.pgmq;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberedValues;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PollingConsumer;
import java.nio.file.Path;
import java.util.Collections;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** JDBC alone: callers with a connection each, or a thread per lane with one statement of a full group after the other. */
final class PgmqPlainProgram implements PlainProgram {

    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        PgmqSettings pgmq = PgmqSettings.of(settings);
        String queue = "plain_" + BenchmarkEvent.randomRun();
        int perStatement = load.async() ? pgmq.groupEvents() : load.eventsPerCall();
        NumberedValues values = new NumberedValues(BenchmarkEvent.randomRun(), load.eventBytes());
        AtomicLong arrived = new AtomicLong();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        int callers = load.async() ? pgmq.lanes() : load.callers();
        try (HikariDataSource database = pgmq.pool(callers + 1)) {
            PgmqStatements statements = new PgmqStatements(database);
            statements.install(Path.of(pgmq.sqlFile()));
            statements.create(queue);
            Load grouped = new Load(load.callers(), load.async(), perStatement, load.eventBytes(), load.seconds());
            PlainLoop.Caller caller = () -> statements.send(queue, PlainLoop.events(values::next, perStatement));
            PollingConsumer consuming =
                    statements.consume(queue, pgmq, page -> arrived.addAndGet(page.size()), failure::set);
            try {
                return PlainLoop.run(grouped, Collections.nCopies(callers, caller), () -> {}, arrived::get);
            } finally {
                consuming.close();
                statements.drop(queue);
            }
        } catch (IllegalStateException e) {
            if (failure.get() != null) {
                e.addSuppressed(failure.get());
            }
            throw e;
        }
    }
}
