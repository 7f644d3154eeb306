package io.eventsql.flink;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The connector is Flink's interfaces over the reader: no SQL of its own, and no class that a cluster does not have. */
@AnalyzeClasses(packages = "io.eventsql.flink", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule connector_dependsOnFlinkAndTheReaderAlone = classes()
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage(
                    "io.eventsql.flink..",
                    "io.eventsql.reader",
                    "java..",
                    "org.apache.flink..",
                    "org.jspecify..",
                    "org.slf4j..");

    @ArchTest
    static final ArchRule connector_hasNoSql =
            noClasses().should().dependOnClassesThat().resideInAnyPackage("java.sql..", "javax.sql..");

    @ArchTest
    static final ArchRule source_doesNotKnowTables = noClasses()
            .that()
            .resideInAPackage("io.eventsql.flink")
            .should()
            .dependOnClassesThat(
                    resideInAPackage("io.eventsql.flink.table").or(resideInAPackage("org.apache.flink.table..")));
}
