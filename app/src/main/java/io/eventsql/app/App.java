package io.eventsql.app;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Consumes a stream of benchmark events and serves counts over HTTP. See {@link AppSettings} for its configuration. */
@SpringBootApplication(proxyBeanMethods = false)
public class App {

    public static void main(String[] args) {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        SpringApplication.run(App.class, args);
    }
}
