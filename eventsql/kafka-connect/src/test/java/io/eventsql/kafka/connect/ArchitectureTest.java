package io.eventsql.kafka.connect;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The connector is Connect's interfaces over the reader: no SQL of its own, and no class that a worker does not have. */
@AnalyzeClasses(packages = "io.eventsql.kafka.connect", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule connector_dependsOnConnectAndTheReaderAlone = classes()
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage(
                    "io.eventsql.kafka.connect",
                    "io.eventsql.reader",
                    "java.lang..",
                    "java.nio..",
                    "java.time..",
                    "java.util..",
                    "org.apache.kafka.common.config",
                    "org.apache.kafka.common.config.types",
                    "org.apache.kafka.connect..",
                    "org.jspecify..",
                    "org.slf4j..");
}
