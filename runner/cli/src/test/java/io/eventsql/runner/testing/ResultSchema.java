package io.eventsql.runner.testing;

import static org.assertj.core.api.Assertions.assertThat;

import com.networknt.schema.Error;
import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The documented form of {@code result.json}. */
public final class ResultSchema {
    private static final Schema SCHEMA = read();

    private ResultSchema() {}

    private static Schema read() {
        try {
            return SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                    .getSchema(Files.readString(Path.of("../result.schema.json")));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns what is wrong with the text of a result. */
    public static List<String> problems(String result) {
        return SCHEMA.validate(result, InputFormat.JSON).stream()
                .map(Error::toString)
                .toList();
    }

    /** Fails if a file is not a valid result. */
    public static void requireValid(Path file) throws IOException {
        assertThat(problems(Files.readString(file))).as(file.toString()).isEmpty();
    }
}
