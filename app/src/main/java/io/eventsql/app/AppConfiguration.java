package io.eventsql.app;

import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.Variables;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/** The app's additions to EventSQL's starter: its settings, and the stream to create if it does not exist. */
@Configuration(proxyBeanMethods = false)
class AppConfiguration {

    @Bean
    AppSettings appSettings(Environment environment) {
        return AppSettings.read(new Variables(environment::getProperty));
    }

    @Bean
    StreamSpec stream(AppSettings settings) {
        return settings.stream();
    }
}
