package io.eventsql.spring.listener;

import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.listener.InvalidListenerException.ListenerName;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.core.annotation.RepeatableContainers;

/**
 * Finds the methods with {@link EventSqlListener} as beans are made, and makes listeners of them when all are there.
 * Neither {@code Ordered} nor with dependencies: it runs after those that make proxies, and makes no bean too early.
 */
public final class EventSqlListenerPostProcessor
        implements BeanPostProcessor, SmartInitializingSingleton, BeanFactoryAware {
    private final Set<Class<?>> withoutListeners = ConcurrentHashMap.newKeySet();
    private final List<FoundListener> found = new ArrayList<>();
    private @Nullable ConfigurableListableBeanFactory beanFactory;
    private boolean allThere;

    /** A method with one annotation; with several it is found several times. */
    record FoundListener(String bean, Object instance, Method method, EventSqlListener annotation) {}

    @Override
    public void setBeanFactory(BeanFactory value) {
        beanFactory = (ConfigurableListableBeanFactory) value;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        Class<?> type = AopUtils.getTargetClass(bean);
        if (bean instanceof AopInfrastructureBean
                || withoutListeners.contains(type)
                || !AnnotationUtils.isCandidateClass(type, EventSqlListener.class)) {
            return bean;
        }
        Map<Method, List<EventSqlListener>> methods =
                MethodIntrospector.selectMethods(type, EventSqlListenerPostProcessor::annotations);
        if (methods.isEmpty()) {
            withoutListeners.add(type);
            return bean;
        }
        List<FoundListener> ofBean = new ArrayList<>();
        methods.forEach((method, annotations) ->
                annotations.forEach(a -> ofBean.add(new FoundListener(beanName, bean, method, a))));
        add(ofBean);
        return bean;
    }

    private static @Nullable List<EventSqlListener> annotations(Method method) {
        List<EventSqlListener> annotations =
                MergedAnnotations.from(
                                method, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                        .stream(EventSqlListener.class)
                        .map(MergedAnnotation::synthesize)
                        .toList();
        return annotations.isEmpty() ? null : annotations;
    }

    private void add(List<FoundListener> ofBean) {
        synchronized (found) {
            if (!allThere) {
                found.addAll(ofBean);
                return;
            }
        }
        register(ofBean); // of a bean that is only made now
    }

    @Override
    public void afterSingletonsInstantiated() {
        List<FoundListener> all;
        synchronized (found) {
            allThere = true;
            all = List.copyOf(found);
            found.clear();
        }
        if (!all.isEmpty()) {
            register(all);
        }
    }

    private void register(List<FoundListener> listeners) {
        if (beanFactory == null) {
            throw new IllegalStateException("used outside of a bean factory");
        }
        ListenerFactory factory =
                beanFactory.getBeanProvider(ListenerFactory.class).getIfAvailable();
        if (factory == null) {
            FoundListener first = listeners.getFirst();
            throw new InvalidListenerException(
                    new ListenerName(first.bean(), first.method()),
                    "needs EventSQL, which has no database here",
                    "Configure a DataSource (spring.datasource.*) or eventsql.shards; without listeners:"
                            + " eventsql.enabled=false.");
        }
        factory.registerAll(listeners);
    }
}
