package io.eventsql.spring.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The pages show the classes that {@link TwoServicesIT} runs. */
class ReadmeTest {
    private static final Path ROOT = Path.of("../..");
    private static final Path EXAMPLE = Path.of("src/test/java/io/eventsql/spring/example");

    @ParameterizedTest
    @CsvSource({
        "README.md, orders/Orders.java",
        "README.md, mail/Mailer.java",
        "docs/spring-boot.md, orders/Orders.java",
        "docs/spring-boot.md, mail/Mailer.java",
        "docs/spring-boot.md, billing/Billing.java",
        "docs/spring-boot.md, billing/OrderPaid.java",
        "docs/spring-boot.md, billing/OrderPaidCurrency.java",
    })
    void example_isTheTestedOne(String page, String file) throws IOException {
        String shown = Files.readString(ROOT.resolve(page)).replaceAll("\\s+", " ");
        String tested = Files.readString(EXAMPLE.resolve(file));
        int start = tested.indexOf('\n', tested.indexOf("// tag::"));
        String part = tested.substring(start, tested.indexOf("// end::"));
        assertThat(shown).contains(part.strip().replaceAll("\\s+", " "));
    }
}
