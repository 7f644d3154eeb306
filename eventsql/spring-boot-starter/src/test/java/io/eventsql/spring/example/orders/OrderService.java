package io.eventsql.spring.example.orders;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** One application: it takes orders. */
@SpringBootApplication(proxyBeanMethods = false)
public class OrderService {}
