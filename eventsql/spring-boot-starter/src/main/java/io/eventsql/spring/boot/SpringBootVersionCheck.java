package io.eventsql.spring.boot;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.Ordered;

/**
 * Rejects Spring Boot before version 4 with a sentence, before its incompatible auto-configurations fail with obscure errors. An
 * initializer runs before any bean definition is loaded, and every version of Spring Boot finds it in {@code
 * META-INF/spring.factories}. It must not use a class that only Spring Boot 4 has.
 */
final class SpringBootVersionCheck implements ApplicationContextInitializer<ConfigurableApplicationContext>, Ordered {
    private static final int SUPPORTED_MAJOR_MIN = 4;

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        check(SpringBootVersion.getVersion());
    }

    /** @param version such as {@code 4.0.1}; {@code null} if unknown */
    static void check(@Nullable String version) {
        if (version != null
                && version.matches("\\d{1,9}\\..*")
                && Integer.parseInt(version.substring(0, version.indexOf('.'))) < SUPPORTED_MAJOR_MIN) {
            throw new UnsupportedSpringBootException(version);
        }
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }
}
