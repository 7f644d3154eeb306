package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;

/** An application with an older Spring Boot fails to start with one sentence. */
class SpringBootVersionCheckTest {
    /** Copied by the build. */
    private static final Path SPRING_BOOT_3 = Path.of("target/spring-boot-3");

    /** The starter's own dependencies that Spring Boot 3 does not manage, so that version 4 remains. */
    private static final List<String> KEPT = List.of(
            "classes",
            "test-classes",
            "eventsql",
            "spring-boot-jdbc",
            "spring-boot-sql",
            "spring-boot-jackson",
            "spring-boot-transaction",
            "spring-boot-persistence",
            "HikariCP",
            "jackson-",
            "slf4j-api",
            "logback-",
            "micrometer-observation",
            "micrometer-commons",
            "postgresql",
            "jooq",
            "jspecify");

    @EnableAutoConfiguration
    static class App {
        public static void main(String[] arguments) {
            SpringApplication.run(App.class, arguments);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.7.18", "3.5.7", "3.5.8-SNAPSHOT"})
    void springBoot_before4_isRejected(String version) {
        assertThatExceptionOfType(UnsupportedSpringBootException.class)
                .isThrownBy(() -> SpringBootVersionCheck.check(version))
                .withMessage("EventSQL needs Spring Boot 4, but the application uses Spring Boot " + version + ".");
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"4.0.0", "4.1.1", "10.0.0-M1", "unknown"})
    void springBoot_4OrUnknown_isAccepted(String version) {
        assertThatCode(() -> SpringBootVersionCheck.check(version)).doesNotThrowAnyException();
    }

    @Test
    void application_withSpringBoot3_failsWithOneSentence() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        classPath(),
                        App.class.getName())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(process.waitFor()).isEqualTo(1);
        assertThat(output)
                .contains("APPLICATION FAILED TO START")
                .containsPattern("EventSQL needs Spring Boot 4, but the application uses Spring Boot 3\\.5\\.\\d+\\.")
                .contains("Upgrade the application to Spring Boot 4.")
                .doesNotContain("BeanDefinition", "NoClassDefFoundError");
    }

    private static String classPath() throws IOException {
        Stream<String> kept = Arrays.stream(
                        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"))
                                .split(File.pathSeparator))
                .filter(entry ->
                        KEPT.stream().anyMatch(name -> new File(entry).getName().startsWith(name)));
        try (Stream<Path> old = Files.list(SPRING_BOOT_3)) {
            return Stream.concat(old.map(Path::toString), kept).collect(Collectors.joining(File.pathSeparator));
        }
    }
}
