package io.eventsql.spring;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.annotation.OptBoolean;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.AnnotatedType;
import java.lang.reflect.Executable;
import java.lang.reflect.Parameter;
import java.lang.reflect.TypeVariable;
import java.util.stream.Stream;
import org.jspecify.annotations.NonNull;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.NullUnmarked;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;
import tools.jackson.databind.cfg.MapperConfig;
import tools.jackson.databind.introspect.Annotated;
import tools.jackson.databind.introspect.AnnotatedMember;
import tools.jackson.databind.introspect.AnnotatedParameter;
import tools.jackson.databind.introspect.NopAnnotationIntrospector;

/**
 * Makes Jackson reject a payload that lacks what its class must have: record components and creator parameters that are
 * primitive or non-null under JSpecify are required and must not be {@code null}. Jackson's own annotations take precedence:
 * {@code @JsonProperty(isRequired = FALSE)} and {@code @JsonSetter(nulls = …)}. Kotlin's classes are left to its module. What a
 * record must have is always written, also by a mapper that leaves out empty values or zeros.
 */
final class RequiredProperties extends NopAnnotationIntrospector {
    private static final long serialVersionUID = 1L;
    private static final JsonInclude.Value ALWAYS =
            JsonInclude.Value.construct(JsonInclude.Include.ALWAYS, JsonInclude.Include.USE_DEFAULTS);

    @Override
    public @Nullable Boolean hasRequiredMarker(MapperConfig<?> config, AnnotatedMember member) {
        return isRequired(member) ? Boolean.TRUE : null;
    }

    @Override
    public JsonSetter.Value findSetterInfo(MapperConfig<?> config, Annotated annotated) {
        return isRequired(annotated) ? JsonSetter.Value.forValueNulls(Nulls.FAIL) : JsonSetter.Value.empty();
    }

    @Override
    public JsonInclude.Value findPropertyInclusion(MapperConfig<?> config, Annotated annotated) {
        boolean isWritten = annotated instanceof AnnotatedMember member && isRequiredComponent(member);
        return isWritten ? ALWAYS : JsonInclude.Value.empty();
    }

    /** Whether it reads a component of a record that must have it: an accessor or a field. */
    private static boolean isRequiredComponent(AnnotatedMember member) {
        Class<?> declaring = member.getDeclaringClass();
        return !(member instanceof AnnotatedParameter)
                && declaring.isRecord()
                && !isOptional(member)
                && !KotlinDetector.isKotlinType(declaring)
                && Stream.of(declaring.getRecordComponents())
                        .filter(component -> component.getName().equals(member.getName()))
                        .anyMatch(component ->
                                mustBePresent(component.getType(), component.getAnnotatedType(), declaring, declaring));
    }

    private static boolean isRequired(Annotated annotated) {
        if (!(annotated instanceof AnnotatedParameter parameter) || isOptional(parameter)) {
            return false;
        }
        @Nullable AnnotatedElement creator = parameter.getOwner().getAnnotated();
        if (!(creator instanceof Executable executable) || parameter.getIndex() >= executable.getParameterCount()) {
            return false;
        }
        Class<?> declaring = executable.getDeclaringClass();
        if (KotlinDetector.isKotlinType(declaring)) {
            return false;
        }
        Parameter declared = executable.getParameters()[parameter.getIndex()];
        AnnotatedType type = annotatedType(declared, parameter.getIndex(), declaring);
        return mustBePresent(declared.getType(), type, executable, declaring);
    }

    /** Whether a value is primitive or non-null; the absence of an {@code Optional} has a value. */
    private static boolean mustBePresent(Class<?> raw, AnnotatedType type, AnnotatedElement scope, Class<?> declaring) {
        boolean canBeEmpty = raw.getName().startsWith("java.util.Optional");
        return raw.isPrimitive() || (!canBeEmpty && isNonNull(type, scope, declaring));
    }

    private static boolean isOptional(AnnotatedMember member) {
        @Nullable JsonProperty property = member.getAnnotation(JsonProperty.class);
        @Nullable JsonSetter setter = member.getAnnotation(JsonSetter.class);
        return (property != null && property.isRequired() == OptBoolean.FALSE)
                || (setter != null && setter.nulls() != Nulls.DEFAULT);
    }

    /** Of a record the type of the component, which always has its annotations. */
    private static AnnotatedType annotatedType(Parameter parameter, int index, Class<?> declaring) {
        boolean isComponent = declaring.isRecord()
                && index < declaring.getRecordComponents().length
                && declaring.getRecordComponents()[index].getType() == parameter.getType();
        return isComponent ? declaring.getRecordComponents()[index].getAnnotatedType() : parameter.getAnnotatedType();
    }

    private static boolean isNonNull(AnnotatedType type, AnnotatedElement scope, Class<?> declaring) {
        if (type.isAnnotationPresent(Nullable.class) || type.getType() instanceof TypeVariable<?>) {
            return false;
        }
        return type.isAnnotationPresent(NonNull.class) || isNullMarked(scope, declaring);
    }

    /** Whether the closest annotated scope is null-marked: a creator, its classes, their package, their module. */
    private static boolean isNullMarked(AnnotatedElement innermost, Class<?> declaring) {
        @Nullable AnnotatedElement scope = innermost;
        while (scope != null) {
            if (scope.isAnnotationPresent(NullUnmarked.class)) {
                return false;
            }
            if (scope.isAnnotationPresent(NullMarked.class)) {
                return true;
            }
            scope = enclosing(scope);
        }
        return declaring.getModule().isAnnotationPresent(NullMarked.class);
    }

    private static @Nullable AnnotatedElement enclosing(AnnotatedElement scope) {
        if (scope instanceof Executable executable) {
            return executable.getDeclaringClass();
        }
        if (!(scope instanceof Class<?> type)) {
            return null;
        }
        if (type.getEnclosingMethod() != null) {
            return type.getEnclosingMethod();
        }
        return type.getEnclosingClass() != null ? type.getEnclosingClass() : type.getPackage();
    }
}
