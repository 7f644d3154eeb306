package io.eventsql.spring.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the README shows of Spring is what {@link TwoServicesIT} runs. */
class ReadmeTest {
    private static final Path README = Path.of("../../README.md");
    private static final Path EXAMPLE = Path.of("src/test/java/io/eventsql/spring/example");

    @ParameterizedTest
    @ValueSource(strings = {"orders/Orders.java", "mail/Mailer.java"})
    void example_isTheTestedOne(String file) throws IOException {
        String shown = Files.readString(README).replaceAll("\\s+", " ");
        String tested = Files.readString(EXAMPLE.resolve(file));
        String part = tested.substring(tested.indexOf("@Service"), tested.indexOf("// end::"));
        assertThat(shown).contains(part.strip().replaceAll("\\s+", " "));
    }
}
