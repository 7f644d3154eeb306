package io.eventsql.spring.boot;

import org.springframework.beans.factory.NoUniqueBeanDefinitionException;

/** Thrown if there are several JSON mappers and none is primary. */
final class AmbiguousJsonMapperException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    AmbiguousJsonMapperException(NoUniqueBeanDefinitionException cause) {
        super("EventSQL found several JsonMapper beans, none of them primary: " + cause.getBeanNamesFound(), cause);
    }
}
