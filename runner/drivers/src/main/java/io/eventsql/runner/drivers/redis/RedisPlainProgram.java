package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberedValues;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PollingConsumer;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import redis.clients.jedis.RedisClient;

/** Jedis alone: callers with a connection each, or a thread per shared connection with one pipeline after the other. */
final class RedisPlainProgram implements PlainProgram {

    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        RedisSettings redis = RedisSettings.of(settings);
        String stream = "plain_" + BenchmarkEvent.randomRun();
        int perPipeline = load.async() ? redis.pipelineEvents() : load.eventsPerCall();
        NumberedValues values = new NumberedValues(BenchmarkEvent.randomRun(), load.eventBytes());
        AtomicLong arrived = new AtomicLong();
        try (RedisClient client = redis.newClient()) {
            RedisReader reader = new RedisReader(client, stream, "plain", redis);
            RedisAppend append = new RedisAppend(client, stream);
            PollingConsumer consuming =
                    reader.start("plain", page -> arrived.addAndGet(page.size()), Throwable::printStackTrace);
            PlainLoop.Caller caller = () -> append.append(PlainLoop.events(values::next, perPipeline));
            List<PlainLoop.Caller> callers = Collections.nCopies(load.async() ? redis.lanes() : load.callers(), caller);
            Load pipelined = new Load(load.callers(), load.async(), perPipeline, load.eventBytes(), load.seconds());
            try {
                return PlainLoop.run(pipelined, callers, () -> {}, arrived::get);
            } finally {
                consuming.close();
                client.del(stream.getBytes(UTF_8), (stream + ":plain").getBytes(UTF_8));
            }
        }
    }
}
