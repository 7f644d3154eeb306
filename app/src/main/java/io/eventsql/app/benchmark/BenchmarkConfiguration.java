package io.eventsql.app.benchmark;

import io.eventsql.app.AppSettings;
import io.eventsql.benchmark.event.EpochMicros;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The beans that count events and serve the counts, using the system clock. */
@Configuration(proxyBeanMethods = false)
class BenchmarkConfiguration {

    @Bean
    BenchmarkRuns benchmarkRuns() {
        return new BenchmarkRuns();
    }

    @Bean
    Barriers barriers() {
        return new Barriers(EpochMicros::now);
    }

    @Bean
    BenchmarkConsumer benchmarkConsumer(BenchmarkRuns runs, MeterRegistry registry, AppSettings settings) {
        var metrics = new ConsumeMetrics(registry, settings.stream().name());
        return new BenchmarkConsumer(runs, metrics, EpochMicros::now);
    }
}
