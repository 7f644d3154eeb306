package io.eventsql.spring.boot;

import org.springframework.beans.factory.NoUniqueBeanDefinitionException;

/** There are several data sources, and nothing says which of them EventSQL is to use. */
final class AmbiguousDataSourceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    AmbiguousDataSourceException(NoUniqueBeanDefinitionException cause) {
        super("EventSQL found several DataSource beans, none of them primary: " + cause.getBeanNamesFound(), cause);
    }
}
