package io.eventsql.app;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Consumes a stream of benchmark events and answers over HTTP what arrived; {@link AppSettings} says how it is set. */
@SpringBootApplication(proxyBeanMethods = false)
public class App {

    public static void main(String[] args) {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        SpringApplication.run(App.class, args);
    }
}
