package io.eventsql.spring.boot;

import org.springframework.beans.factory.NoUniqueBeanDefinitionException;

/** Thrown if there are several data sources and none is marked or primary. */
final class AmbiguousDataSourceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    AmbiguousDataSourceException(NoUniqueBeanDefinitionException cause) {
        super("EventSQL found several DataSource beans, none of them primary: " + cause.getBeanNamesFound(), cause);
    }
}
