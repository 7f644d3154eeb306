package io.eventsql.spring;

import static com.tngtech.archunit.core.domain.JavaModifier.PROTECTED;
import static com.tngtech.archunit.core.domain.JavaModifier.PUBLIC;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClass.Predicates;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.stream.Stream;
import org.springframework.boot.autoconfigure.AutoConfiguration;

/** The shape of the starter: its public API, its auto-configuration and its internals. */
@AnalyzeClasses(packages = "io.eventsql.spring", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    private static final String API = "io.eventsql.spring";
    private static final String INTERNALS = "io.eventsql.spring.internal..";
    private static final String AUTO_CONFIGURATION = "io.eventsql.spring.boot..";

    @ArchTest
    static final ArchRule publicApi_signatures_areFreeOfInternals =
            classes().that().resideInAPackage(API).and().arePublic().should(haveSignaturesFreeOfInternals());

    @ArchTest
    static final ArchRule publicApi_usesNeitherInternalsNorAutoConfiguration = noClasses()
            .that()
            .resideInAPackage(API)
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(INTERNALS, AUTO_CONFIGURATION);

    @ArchTest
    static final ArchRule internals_doNotUseAutoConfiguration = noClasses()
            .that()
            .resideInAPackage(INTERNALS)
            .should()
            .dependOnClassesThat()
            .resideInAPackage(AUTO_CONFIGURATION);

    @ArchTest
    static final ArchRule autoConfiguration_publicTypes_areAutoConfigurations = classes()
            .that()
            .resideInAPackage(AUTO_CONFIGURATION)
            .and()
            .arePublic()
            .should()
            .beAnnotatedWith(AutoConfiguration.class);

    @ArchTest
    static final ArchRule starter_usesOnlyTheLibrarysApi =
            noClasses().should().dependOnClassesThat().resideInAPackage("io.eventsql.internal..");

    @ArchTest
    static final ArchRule internals_haveNoCycles =
            slices().matching("io.eventsql.spring.internal.(*)..").should().beFreeOfCycles();

    private static ArchCondition<JavaClass> haveSignaturesFreeOfInternals() {
        return new ArchCondition<>("have signatures free of internals") {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                type.getMembers().stream()
                        .filter(member -> member.getModifiers().contains(PUBLIC)
                                || member.getModifiers().contains(PROTECTED))
                        .forEach(member -> types(member)
                                .map(JavaClass::getBaseComponentType)
                                .filter(Predicates.resideInAnyPackage(INTERNALS, AUTO_CONFIGURATION))
                                .forEach(internal -> events.add(SimpleConditionEvent.violated(
                                        member, member.getFullName() + " exposes " + internal.getName()))));
            }
        };
    }

    private static Stream<JavaClass> types(JavaMember member) {
        if (member instanceof JavaField field) {
            return field.getType().getAllInvolvedRawTypes().stream();
        }
        JavaCodeUnit code = (JavaCodeUnit) member;
        return Stream.concat(
                code.getReturnType().getAllInvolvedRawTypes().stream(),
                code.getParameterTypes().stream().flatMap(type -> type.getAllInvolvedRawTypes().stream()));
    }
}
