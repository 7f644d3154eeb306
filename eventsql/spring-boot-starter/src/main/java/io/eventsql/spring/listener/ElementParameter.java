package io.eventsql.spring.listener;

import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;

/** A list parameter of a batch method, seen as if the method took one event: of the type of the list's elements. */
final class ElementParameter extends MethodParameter {
    private final ResolvableType type;

    ElementParameter(MethodParameter list) {
        super(list);
        this.type = elementType(list);
    }

    private static ResolvableType elementType(MethodParameter list) {
        ResolvableType element =
                ResolvableType.forMethodParameter(list).asCollection().getGeneric(0);
        return element.getType() instanceof WildcardType wildcard
                ? ResolvableType.forType(wildcard.getUpperBounds()[0], ResolvableType.forMethodParameter(list))
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

    @Override
    public ElementParameter clone() {
        return this; // never changed
    }
}
