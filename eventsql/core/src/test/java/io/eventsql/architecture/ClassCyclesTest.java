package io.eventsql.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ClassCyclesTest {
    private static final String FIXTURE = "io.eventsql.architecture.fixture";

    private final JavaClasses classes = new ClassFileImporter().importPackages(FIXTURE);

    @Test
    void cycleOfFour_isFoundThroughSignatureMethodAndNestedClass() {
        assertThat(ClassCycles.largerThan(3, classes))
                .containsExactly(new TreeSet<>(
                        Set.of(FIXTURE + ".Hub", FIXTURE + ".Spoke", FIXTURE + ".Rim", FIXTURE + ".Tyre")));
    }

    @Test
    void cycleOfFour_isAllowedWhereTheLimitIsFour() {
        assertThat(ClassCycles.largerThan(4, classes)).isEmpty();
    }
}
