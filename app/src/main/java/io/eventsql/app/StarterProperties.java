package io.eventsql.app;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.InvalidSettingException;
import io.eventsql.benchmark.settings.Variables;
import java.util.HashMap;
import java.util.Map;
import org.springframework.boot.EnvironmentPostProcessor;
import org.springframework.boot.SpringApplication;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/**
 * Maps the app's settings to properties of EventSQL's starter: {@code DB0_HOST} and the others to {@code
 * eventsql.shards}, and the consumed stream to {@code app.*}, to which the listener refers.
 */
final class StarterProperties implements EnvironmentPostProcessor {

    /** @throws InvalidSettingException if a variable is missing or invalid */
    @Override
    public void postProcessEnvironment(ConfigurableEnvironment environment, SpringApplication application) {
        if (!environment.getProperty("eventsql.enabled", Boolean.class, true)) {
            return;
        }
        AppSettings settings = AppSettings.read(new Variables(environment::getProperty));
        Map<String, Object> properties = new HashMap<>();
        properties.put("app.stream", settings.stream().name());
        properties.put("app.consumer", settings.consumer().name());
        properties.put("app.page-events", settings.consumer().pageEvents());
        for (int number = 0; number < settings.shards().size(); number++) {
            DatabaseAddress shard = settings.shards().get(number);
            String prefix = "eventsql.shards.db" + number + ".";
            properties.put(prefix + "url", shard.jdbcUrl());
            properties.put(prefix + "username", shard.user());
            properties.put(prefix + "password", shard.password());
            properties.put(prefix + "pool-size", settings.poolSize());
        }
        environment.getPropertySources().addFirst(new MapPropertySource("app", properties));
    }
}
