package io.eventsql.spring.internal.listener;

import java.lang.annotation.Annotation;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;

/** A list parameter of a batch method as a parameter for one event, with the type of the list's elements. */
final class ElementParameter extends MethodParameter {
    private final MethodParameter list;
    private final ResolvableType type;

    /** @param list a parameter of type {@code List} with a type argument */
    ElementParameter(MethodParameter list) {
        super(list);
        this.list = list;
        this.type = elementType(ResolvableType.forMethodParameter(list));
    }

    private static ResolvableType elementType(ResolvableType list) {
        ResolvableType element = list.getGeneric(0);
        return element.getType() instanceof WildcardType wildcard
                ? ResolvableType.forType(wildcard.getUpperBounds()[0], list)
                : element;
    }

    @Override
    public Class<?> getParameterType() {
        return type.toClass();
    }

    @Override
    public Type getGenericParameterType() {
        return type.getType();
    }

    /** Those of the list, with aliases and those of interfaces, which a copy does not have. */
    @Override
    public Annotation[] getParameterAnnotations() {
        return list.getParameterAnnotations();
    }

    @Override
    public ElementParameter clone() {
        return this; // never changed
    }
}
