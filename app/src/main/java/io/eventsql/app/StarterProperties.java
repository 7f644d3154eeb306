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
 * Gives EventSQL's starter the app's settings as its properties: {@code DB0_HOST} and the others as {@code
 * eventsql.shards}, what is consumed as {@code app.*}, which the listener names.
 */
final class StarterProperties implements EnvironmentPostProcessor {

    /** @throws InvalidSettingException if a variable is missing or wrong */
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
