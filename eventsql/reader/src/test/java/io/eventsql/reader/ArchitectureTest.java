package io.eventsql.reader;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The reader stays small: Java, the driver, and SQL in few classes. */
@AnalyzeClasses(packages = "io.eventsql.reader", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    private static final String SQL = "io.eventsql.reader.(ReaderSql|FetchSql|ShardDatabase|SqlFailures)(\\$.*)?";

    @ArchTest
    static final ArchRule reader_dependsOnTheDriverAlone = classes()
            .should()
            .onlyDependOnClassesThat(
                    resideInAnyPackage("io.eventsql.reader", "java..", "javax.sql..", "org.jspecify.."))
            .orShould()
            .onlyDependOnClassesThat(
                    resideInAnyPackage("io.eventsql.reader", "java..", "javax.sql..", "org.postgresql.ds.."));

    @ArchTest
    static final ArchRule jdbcStatements_areUsedInFewClasses = noClasses()
            .that()
            .haveNameNotMatching(SQL)
            .should()
            .dependOnClassesThat(nameMatching("java\\.sql\\.((Prepared)?Statement|ResultSet|Array)")
                    .or(resideInAPackage("org.postgresql.core..")));
}
