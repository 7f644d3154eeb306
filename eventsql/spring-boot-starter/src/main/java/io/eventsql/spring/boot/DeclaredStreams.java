package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.spring.internal.StreamCreator;
import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;

/** Creates the streams of properties and beans when {@link EventSql} has been created, before it is injected anywhere. */
final class DeclaredStreams implements BeanPostProcessor {
    private final ObjectProvider<EventSqlProperties> properties;
    private final ObjectProvider<StreamSpec> beans;

    DeclaredStreams(ObjectProvider<EventSqlProperties> properties, ObjectProvider<StreamSpec> beans) {
        this.properties = properties;
        this.beans = beans;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof EventSql eventSql) {
            create(eventSql);
        }
        return bean;
    }

    /** Spring closes only registered beans, and this one is not registered yet. */
    private void create(EventSql eventSql) {
        try {
            creator(eventSql, properties.getObject(), beans).createDeclared();
        } catch (RuntimeException e) {
            eventSql.close();
            throw e;
        }
    }

    static StreamCreator creator(EventSql eventSql, EventSqlProperties properties, ObjectProvider<StreamSpec> beans) {
        List<StreamSpec> declared = new ArrayList<>(beans.orderedStream().toList());
        declared.addAll(properties.streamSpecs());
        return new StreamCreator(eventSql, declared, properties.createMissingStreams());
    }
}
