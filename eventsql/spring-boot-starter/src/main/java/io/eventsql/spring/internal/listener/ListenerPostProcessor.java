package io.eventsql.spring.internal.listener;

import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlListener;
import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedElement;
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
import org.springframework.util.ClassUtils;

/**
 * Finds methods and classes with {@link EventSqlListener} when beans are created, and registers them as listeners when all beans exist.
 * Neither {@code Ordered} nor with dependencies: it runs after post-processors that create proxies, and creates no bean
 * too early.
 */
public final class ListenerPostProcessor implements BeanPostProcessor, SmartInitializingSingleton, BeanFactoryAware {
    private static final List<Class<? extends Annotation>> CANDIDATES =
            List.of(EventSqlListener.class, EventSqlHandler.class);

    private final Set<Class<?>> typesWithoutListeners = ConcurrentHashMap.newKeySet();
    private final List<FoundListener> found = new ArrayList<>();
    private @Nullable ConfigurableListableBeanFactory beanFactory;
    private boolean allSingletonsExist;

    /**
     * A method or a class with one annotation; with several annotations it is found several times.
     *
     * @param method {@code null} if the class is annotated
     */
    record FoundListener(
            String bean,
            Object instance,
            Class<?> type,
            @Nullable Method method,
            EventSqlListener annotation) {
        ListenerName name() {
            return method == null ? ListenerName.of(bean, type) : ListenerName.of(bean, method);
        }
    }

    @Override
    public void setBeanFactory(BeanFactory value) {
        beanFactory = (ConfigurableListableBeanFactory) value;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        Class<?> type = AopUtils.getTargetClass(bean);
        if (bean instanceof AopInfrastructureBean
                || typesWithoutListeners.contains(type)
                || !AnnotationUtils.isCandidateClass(type, CANDIDATES)) {
            return bean;
        }
        List<FoundListener> ofBean = listeners(bean, beanName, type);
        if (ofBean.isEmpty()) {
            typesWithoutListeners.add(type);
        } else {
            add(ofBean);
        }
        return bean;
    }

    private static List<FoundListener> listeners(Object bean, String beanName, Class<?> type) {
        List<FoundListener> listeners = new ArrayList<>();
        annotations(type).forEach(a -> listeners.add(new FoundListener(beanName, bean, type, null, a)));
        if (listeners.isEmpty()) {
            requireNoHandlers(beanName, type);
        }
        Map<Method, List<EventSqlListener>> methods = annotatedMethods(type);
        methods.forEach((method, annotations) ->
                annotations.forEach(a -> listeners.add(new FoundListener(beanName, bean, type, method, a))));
        return listeners;
    }

    private static Map<Method, List<EventSqlListener>> annotatedMethods(Class<?> type) {
        return MethodIntrospector.selectMethods(
                type, (MethodIntrospector.MetadataLookup<List<EventSqlListener>>) method -> {
                    List<EventSqlListener> annotations = annotations(method);
                    return annotations.isEmpty() ? null : annotations;
                });
    }

    /** Returns whether beans of this type are listeners or have methods that are. */
    public static boolean hasListeners(Class<?> beanType) {
        Class<?> type = ClassUtils.getUserClass(beanType);
        return AnnotationUtils.isCandidateClass(type, EventSqlListener.class)
                && (!annotations(type).isEmpty() || !annotatedMethods(type).isEmpty());
    }

    private static List<EventSqlListener> annotations(AnnotatedElement element) {
        return MergedAnnotations.from(
                        element, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                .stream(EventSqlListener.class)
                .map(MergedAnnotation::synthesize)
                .toList();
    }

    private static void requireNoHandlers(String bean, Class<?> type) {
        HandlerFactory.handlerMethods(type).keySet().stream().findFirst().ifPresent(method -> {
            throw ListenerName.of(bean, method)
                    .invalid(
                            "is annotated with @EventSqlHandler, but its class is no listener",
                            "Annotate the class with @EventSqlListener.");
        });
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
            throw first.name()
                    .invalid(
                            "needs EventSQL, but no database is configured",
                            "Configure a DataSource (spring.datasource.*) or eventsql.shards; without listeners:"
                                    + " eventsql.enabled=false.");
        }
        factory.registerAll(listeners);
    }
}
