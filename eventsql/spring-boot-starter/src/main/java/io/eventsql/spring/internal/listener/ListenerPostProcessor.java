package io.eventsql.spring.internal.listener;

import io.eventsql.spring.EventSqlListener;
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
 * Finds methods with {@link EventSqlListener} when beans are created, and registers them as listeners when all beans exist.
 * Neither {@code Ordered} nor with dependencies: it runs after post-processors that create proxies, and creates no bean
 * too early.
 */
public final class ListenerPostProcessor implements BeanPostProcessor, SmartInitializingSingleton, BeanFactoryAware {
    private final Set<Class<?>> typesWithoutListeners = ConcurrentHashMap.newKeySet();
    private final List<FoundListener> found = new ArrayList<>();
    private @Nullable ConfigurableListableBeanFactory beanFactory;
    private boolean allSingletonsExist;

    /** A method with one annotation; a method with several annotations is found several times. */
    record FoundListener(String bean, Object instance, Method method, EventSqlListener annotation) {}

    @Override
    public void setBeanFactory(BeanFactory value) {
        beanFactory = (ConfigurableListableBeanFactory) value;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        Class<?> type = AopUtils.getTargetClass(bean);
        if (bean instanceof AopInfrastructureBean
                || typesWithoutListeners.contains(type)
                || !AnnotationUtils.isCandidateClass(type, EventSqlListener.class)) {
            return bean;
        }
        Map<Method, List<EventSqlListener>> methods =
                MethodIntrospector.selectMethods(type, ListenerPostProcessor::annotations);
        if (methods.isEmpty()) {
            typesWithoutListeners.add(type);
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
            if (!allSingletonsExist) {
                found.addAll(ofBean);
                return;
            }
        }
        register(ofBean); // of a bean that is created late
    }

    @Override
    public void afterSingletonsInstantiated() {
        List<FoundListener> all;
        synchronized (found) {
            allSingletonsExist = true;
            all = List.copyOf(found);
            found.clear();
        }
        if (!all.isEmpty()) {
            register(all);
        }
    }

    private void register(List<FoundListener> listeners) {
        if (beanFactory == null) {
            throw new IllegalStateException("setBeanFactory was not called");
        }
        ListenerFactory factory =
                beanFactory.getBeanProvider(ListenerFactory.class).getIfAvailable();
        if (factory == null) {
            FoundListener first = listeners.getFirst();
            throw new ListenerName(first.bean(), first.method())
                    .invalid(
                            "needs EventSQL, but no database is configured",
                            "Configure a DataSource (spring.datasource.*) or eventsql.shards; without listeners:"
                                    + " eventsql.enabled=false.");
        }
        factory.registerAll(listeners);
    }
}
