package io.eventsql.spring.test;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.TestContextAnnotationUtils;

/** Finds {@link EmbeddedEventSql} on test classes; registered in {@code META-INF/spring.factories}. */
final class OwnDatabaseFactory implements ContextCustomizerFactory {
    @Override
    public @Nullable ContextCustomizer createContextCustomizer(
            Class<?> testClass, List<ContextConfigurationAttributes> configAttributes) {
        EmbeddedEventSql embedded = TestContextAnnotationUtils.findMergedAnnotation(testClass, EmbeddedEventSql.class);
        return embedded == null ? null : new OwnDatabase(outermost(testClass), embedded.durable());
    }

    /** Nested classes share the context, and so the database, of the class around them. */
    private static Class<?> outermost(Class<?> testClass) {
        Class<?> outer = testClass;
        while (TestContextAnnotationUtils.searchEnclosingClass(outer)) {
            outer = outer.getEnclosingClass();
        }
        return outer;
    }
}
