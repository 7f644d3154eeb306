package io.eventsql.spring.example.mail;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Another application: it sends mails. */
@SpringBootApplication(proxyBeanMethods = false)
public class MailService {}
