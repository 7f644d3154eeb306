package io.eventsql.spring.test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The test support uses only the public API of the library and the starter. */
@AnalyzeClasses(packages = "io.eventsql.spring.test", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule testSupport_usesOnlyPublicApi = noClasses()
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.eventsql.internal..", "io.eventsql.spring.internal..", "io.eventsql.spring.boot..");
}
