package io.eventsql.spring.boot;

import io.eventsql.spring.EventType;
import io.eventsql.spring.EventTypes;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurationPackages;
import org.springframework.context.annotation.ClassPathScanningCandidateComponentProvider;
import org.springframework.core.env.Environment;
import org.springframework.core.type.filter.AnnotationTypeFilter;
import org.springframework.util.ClassUtils;

/** Registers the types of properties and the classes with {@link EventType} in the application's packages. */
final class EventTypesRegistrar implements BeanPostProcessor {
    private final BeanFactory beans;
    private final Environment environment;
    private final ObjectProvider<EventSqlProperties> properties;

    EventTypesRegistrar(BeanFactory beans, Environment environment, ObjectProvider<EventSqlProperties> properties) {
        this.beans = beans;
        this.environment = environment;
        this.properties = properties;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof EventTypes types) {
            types.register(properties.getObject().eventTypes().toArray(Class<?>[]::new));
            if (AutoConfigurationPackages.has(beans)) {
                AutoConfigurationPackages.get(beans).forEach(name -> registerAnnotated(types, name));
            }
        }
        return bean;
    }

    private void registerAnnotated(EventTypes types, String packageName) {
        ClassPathScanningCandidateComponentProvider scanner =
                new ClassPathScanningCandidateComponentProvider(false, environment) {
                    @Override
                    protected boolean isCandidateComponent(AnnotatedBeanDefinition definition) {
                        return true; // records nested in an interface are not static in the sense of a component
                    }
                };
        scanner.addIncludeFilter(new AnnotationTypeFilter(EventType.class, false));
        for (BeanDefinition found : scanner.findCandidateComponents(packageName)) {
            String name = String.valueOf(found.getBeanClassName());
            types.register(ClassUtils.resolveClassName(name, ClassUtils.getDefaultClassLoader()));
        }
    }
}
