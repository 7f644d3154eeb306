package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.testing.ResultSchema;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ResultSchemaTest {
    private static final Path RESULTS = Path.of("../../results");

    @Test
    void keptResults_areValid() throws IOException {
        List<Path> kept;
        try (Stream<Path> files = Files.walk(RESULTS)) {
            kept = files.filter(file -> file.endsWith("result.json")).toList();
        }

        assertThat(kept).isNotEmpty();
        for (Path file : kept) {
            ResultSchema.requireValid(file);
        }
    }

    @Test
    void figureWithoutUnit_isInvalid() throws IOException {
        String valid = Files.readString(RESULTS.resolve("2026-11-22/8-limits/result.json"));

        assertThat(ResultSchema.problems(valid.replaceFirst("\"unit\"", "\"units\"")))
                .isNotEmpty();
    }

    @Test
    void mainJobWithoutRate_isInvalid() throws IOException {
        String valid = Files.readString(RESULTS.resolve("2026-11-22/1-default/result.json"));

        assertThat(ResultSchema.problems(valid.replaceFirst("\"publish_rate\"", "\"rate\"")))
                .isNotEmpty();
    }
}
