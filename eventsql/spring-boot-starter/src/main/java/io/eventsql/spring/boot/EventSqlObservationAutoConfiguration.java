package io.eventsql.spring.boot;

import io.eventsql.spring.EventSqlHandleConvention;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventSqlPublishConvention;
import io.eventsql.spring.internal.observation.EventSqlHandleTracing;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.propagation.Propagator;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;

/**
 * Observes publishing and handling if there is an {@link ObservationRegistry}; {@code
 * management.observations.enable.eventsql=false} disables it.
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration",
            "org.springframework.boot.micrometer.tracing.autoconfigure.MicrometerTracingAutoConfiguration"
        })
public final class EventSqlObservationAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    EventSqlObservations eventSqlObservations(
            ObjectProvider<ObservationRegistry> registry,
            ObjectProvider<EventSqlPublishConvention> publishConvention,
            ObjectProvider<EventSqlHandleConvention> handleConvention) {
        return new EventSqlObservations(
                registry.getIfUnique(() -> ObservationRegistry.NOOP),
                publishConvention.getIfAvailable(() -> EventSqlPublishConvention.DEFAULT),
                handleConvention.getIfAvailable(() -> EventSqlHandleConvention.DEFAULT));
    }

    /** Links in the spans of batches. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Tracer.class)
    static final class Tracing {
        /** Before Boot's own handler of receivers (1000), which would otherwise create the span. */
        private static final int BEFORE_ANY_RECEIVER = 900;

        @Bean
        @Order(BEFORE_ANY_RECEIVER)
        @ConditionalOnMissingBean
        @ConditionalOnBean({Tracer.class, Propagator.class})
        EventSqlHandleTracing eventSqlHandleTracing(Tracer tracer, Propagator propagator) {
            return new EventSqlHandleTracing(tracer, propagator);
        }
    }
}
