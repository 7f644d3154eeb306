package io.eventsql;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import io.eventsql.architecture.ClassCycles;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The shape of the code: what may know what. */
@AnalyzeClasses(packages = "io.eventsql", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    private static final String API = "io.eventsql";
    /** What carries a jOOQ transaction. */
    private static final Set<String> JOOQ_IN_THE_API = Set.of("org.jooq.Configuration", "org.jooq.DSLContext");

    @ArchTest
    static final ArchRule publicApi_signatures_areFreeOfInternals = classes()
            .that()
            .resideInAPackage(API)
            .and()
            .arePublic()
            .should(haveSignaturesOf(
                    "the API, Java, JSpecify and jOOQ's entrance alone",
                    describe(
                            "the API, Java, JSpecify or jOOQ's entrance",
                            type -> type.isPrimitive()
                                    || type.getPackageName().equals(API)
                                    || type.getPackageName().startsWith("java.")
                                    || type.getPackageName().startsWith("javax.sql")
                                    || JOOQ_IN_THE_API.contains(type.getName())
                                    || type.getPackageName().startsWith("org.jspecify."))));

    @ArchTest
    static final ArchRule jooq_isUsedOnlyInSql = noClasses()
            .that(resideOutsideOfPackage("io.eventsql.internal.sql")
                    .and(describe("are not Outbox", type -> !type.getName().equals(Outbox.class.getName()))))
            .should()
            .dependOnClassesThat()
            .resideInAPackage("org.jooq..");

    @ArchTest
    static final ArchRule jdbcStatements_areUsedOnlyInSql = noClasses()
            .that()
            .resideOutsideOfPackage("io.eventsql.internal.sql")
            .should()
            .dependOnClassesThat(nameMatching(
                            "java\\.sql\\.(Prepared|Callable)?Statement|java\\.sql\\.(ResultSet.*|Array|Blob|Clob)")
                    .or(resideInAPackage("org.postgresql.."))
                    .as("are JDBC statements, results or the driver"));

    @ArchTest
    static final ArchRule core_isFreeOfFrameworks = noClasses()
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("org.springframework..", "com.zaxxer..", "jakarta..", "ch.qos..");

    @ArchTest
    static final ArchRule internals_dependOneWay = layeredArchitecture()
            .consideringOnlyDependenciesInAnyPackage("io.eventsql..")
            .layer("API")
            .definedBy(API)
            .layer("aggregate")
            .definedBy("io.eventsql.internal.aggregate..")
            .layer("append")
            .definedBy("io.eventsql.internal.append..")
            .layer("consume")
            .definedBy("io.eventsql.internal.consume..")
            .layer("relay")
            .definedBy("io.eventsql.internal.relay..")
            .layer("erase")
            .definedBy("io.eventsql.internal.erase..")
            .layer("grow")
            .definedBy("io.eventsql.internal.grow..")
            .layer("move")
            .definedBy("io.eventsql.internal.move..")
            .layer("retain")
            .definedBy("io.eventsql.internal.retain..")
            .layer("wake")
            .definedBy("io.eventsql.internal.wake..")
            .layer("shard")
            .definedBy("io.eventsql.internal.shard..")
            .layer("schema")
            .definedBy("io.eventsql.internal.schema..")
            .layer("sql")
            .definedBy("io.eventsql.internal.sql..")
            .whereLayer("aggregate")
            .mayOnlyBeAccessedByLayers("API")
            .whereLayer("append")
            .mayOnlyBeAccessedByLayers("API", "relay")
            .whereLayer("consume")
            .mayOnlyBeAccessedByLayers("API")
            .whereLayer("relay")
            .mayOnlyBeAccessedByLayers("API", "erase")
            .whereLayer("erase")
            .mayOnlyBeAccessedByLayers("API")
            .whereLayer("grow")
            .mayOnlyBeAccessedByLayers("API")
            .whereLayer("move")
            .mayOnlyBeAccessedByLayers("API")
            .whereLayer("retain")
            .mayOnlyBeAccessedByLayers("API", "append", "consume", "relay")
            .whereLayer("wake")
            .mayOnlyBeAccessedByLayers("API", "append", "consume", "relay", "grow", "move")
            .whereLayer("shard")
            .mayOnlyBeAccessedByLayers(
                    "API", "aggregate", "append", "consume", "relay", "erase", "grow", "move", "retain", "wake")
            .whereLayer("schema")
            .mayOnlyBeAccessedByLayers("shard")
            .whereLayer("sql")
            .mayOnlyBeAccessedByLayers(
                    "aggregate",
                    "append",
                    "consume",
                    "relay",
                    "erase",
                    "grow",
                    "move",
                    "retain",
                    "wake",
                    "shard",
                    "schema");

    @ArchTest
    static final ArchRule internals_haveNoCycles =
            slices().matching("io.eventsql.internal.(*)..").should().beFreeOfCycles();

    /** A larger knot cannot be understood, or tested, in parts. */
    @ArchTest
    static void packages_haveNoClassCycleAboveThree(JavaClasses classes) {
        assertThat(ClassCycles.largerThan(3, classes)).isEmpty();
    }

    /** The API's records, specs and exceptions are plain: only its entrance starts the machinery. */
    @ArchTest
    static final ArchRule api_onlyTheEntranceKnowsInternals = noClasses()
            .that(resideInAPackage(API).and(describe("are not EventSql", type -> !isEntrance(type))))
            .should()
            .dependOnClassesThat(resideInAnyPackage("io.eventsql.internal.."));

    private static boolean isEntrance(JavaClass type) {
        return type.getName().equals(EventSql.class.getName())
                || type.getName().startsWith(EventSql.class.getName() + "$");
    }

    private static ArchCondition<JavaClass> haveSignaturesOf(String what, DescribedPredicate<JavaClass> allowed) {
        return new ArchCondition<>("have signatures of " + what) {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                for (JavaMember member : type.getMembers()) {
                    if (isVisible(member)) {
                        typesOf(member)
                                .map(JavaClass::getBaseComponentType)
                                .filter(allowed.negate())
                                .forEach(wrong -> events.add(SimpleConditionEvent.violated(
                                        member, member.getFullName() + " shows " + wrong.getName())));
                    }
                }
                Stream.concat(type.getRawInterfaces().stream(), type.getRawSuperclass().stream())
                        .filter(allowed.negate())
                        .forEach(wrong -> events.add(
                                SimpleConditionEvent.violated(type, type.getName() + " is a " + wrong.getName())));
            }
        };
    }

    private static boolean isVisible(JavaMember member) {
        Set<JavaModifier> modifiers = member.getModifiers();
        return modifiers.contains(JavaModifier.PUBLIC) || modifiers.contains(JavaModifier.PROTECTED);
    }

    /** All types of a signature, type arguments included. */
    private static Stream<JavaClass> typesOf(JavaMember member) {
        if (member instanceof JavaField field) {
            return field.getType().getAllInvolvedRawTypes().stream();
        }
        JavaCodeUnit code = (JavaCodeUnit) member;
        return Stream.of(
                        code.getReturnType().getAllInvolvedRawTypes(),
                        code.getParameterTypes().stream()
                                .flatMap(t -> t.getAllInvolvedRawTypes().stream())
                                .collect(Collectors.toSet()),
                        code.getThrowsClause().getTypes().stream()
                                .map(JavaClass.class::cast)
                                .collect(Collectors.toSet()))
                .flatMap(Set::stream);
    }
}
