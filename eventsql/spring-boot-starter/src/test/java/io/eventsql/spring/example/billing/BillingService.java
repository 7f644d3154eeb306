package io.eventsql.spring.example.billing;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A third application: it writes invoices. */
@SpringBootApplication(proxyBeanMethods = false)
public class BillingService {}
