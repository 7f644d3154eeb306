package io.eventsql.spring.boot;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfigurationImportFilter;
import org.springframework.boot.autoconfigure.AutoConfigurationMetadata;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.context.EnvironmentAware;
import org.springframework.core.env.Environment;

/**
 * Allows an application without a {@link javax.sql.DataSource} of its own if EventSQL's databases are all it has. The
 * starter brings a pool and a driver, for which Spring Boot requires a {@code DataSource}: its auto-configuration is
 * filtered out if there are {@code eventsql.shards} and the application's own database is not configured.
 */
final class ShardsAloneFilter implements AutoConfigurationImportFilter, EnvironmentAware, BeanFactoryAware {
    private @Nullable Environment environment;
    private @Nullable BeanFactory beans;

    @Override
    public void setEnvironment(Environment environment) {
        this.environment = environment;
    }

    @Override
    public void setBeanFactory(BeanFactory beanFactory) {
        this.beans = beanFactory;
    }

    @Override
    public boolean[] match(@Nullable String[] autoConfigurations, AutoConfigurationMetadata metadata) {
        boolean shardsAlone = has("eventsql.shards") && !has("spring.datasource") && !hasConnectionDetails();
        boolean[] match = new boolean[autoConfigurations.length];
        for (int i = 0; i < match.length; i++) {
            match[i] =
                    !(shardsAlone && DataSourceAutoConfiguration.class.getName().equals(autoConfigurations[i]));
        }
        return match;
    }

    private boolean has(String prefix) {
        return Binder.get(Objects.requireNonNull(environment))
                .bind(prefix, Bindable.mapOf(String.class, Object.class))
                .map(properties -> !properties.isEmpty())
                .orElse(false);
    }

    private boolean hasConnectionDetails() {
        return beans instanceof ListableBeanFactory factory
                && factory.getBeanNamesForType(JdbcConnectionDetails.class, true, false).length > 0;
    }
}
