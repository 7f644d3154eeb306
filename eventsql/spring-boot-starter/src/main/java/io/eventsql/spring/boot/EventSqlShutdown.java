package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.internal.ShutdownBudget;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.DestructionAwareBeanPostProcessor;

/** Closes {@link EventSql} within the time that stopping the listeners has left. */
final class EventSqlShutdown implements DestructionAwareBeanPostProcessor {
    private final ObjectProvider<ShutdownBudget> budget;

    EventSqlShutdown(ObjectProvider<ShutdownBudget> budget) {
        this.budget = budget;
    }

    /** Has the budget created while beans can still be created. */
    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof EventSql) {
            budget.getObject();
        }
        return bean;
    }

    /** Spring's own call of {@link EventSql#close()} finds it closed. */
    @Override
    public void postProcessBeforeDestruction(Object bean, String beanName) {
        if (bean instanceof EventSql eventSql) {
            eventSql.close(budget.getObject().remaining());
        }
    }

    @Override
    public boolean requiresDestruction(Object bean) {
        return bean instanceof EventSql;
    }
}
