package io.eventsql.spring.boot;

/** Thrown if the application uses a version of Spring Boot that EventSQL does not support. */
final class UnsupportedSpringBootException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnsupportedSpringBootException(String version) {
        super("EventSQL needs Spring Boot 4, but the application uses Spring Boot " + version + ".");
    }
}
