package io.eventsql.flink;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The connector is Flink's interfaces over the reader, and over the few statements of sinks: no class that a cluster does not have. */
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
                    "javax.sql..",
                    "org.postgresql..",
                    "org.jspecify..",
                    "org.slf4j..");

    /** Errors of the database end in BatchAppender, which retries. */
    @ArchTest
    static final ArchRule sql_isUsedBySinksAlone = noClasses()
            .that()
            .resideOutsideOfPackage("io.eventsql.flink.sink")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("java.sql..", "javax.sql..", "org.postgresql..");

    @ArchTest
    static final ArchRule statements_areInOneClass = noClasses()
            .that()
            .haveNameNotMatching("io.eventsql.flink.sink.(SinkSql|SinkDatabase)(\\$.*)?")
            .should()
            .dependOnClassesThat(nameMatching("java\\.sql\\.((Prepared)?Statement|ResultSet|Array)"));

    @ArchTest
    static final ArchRule source_doesNotKnowTables = noClasses()
            .that()
            .resideInAnyPackage("io.eventsql.flink", "io.eventsql.flink.sink")
            .should()
            .dependOnClassesThat(
                    resideInAPackage("io.eventsql.flink.table").or(resideInAPackage("org.apache.flink.table..")));
}
