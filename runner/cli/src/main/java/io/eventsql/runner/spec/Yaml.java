package io.eventsql.runner.spec;

import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/** Reads YAML. Rejects duplicate names and content after the first document. */
final class Yaml {
    private static final YAMLMapper MAPPER = YAMLMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private Yaml() {}

    /** @throws tools.jackson.core.JacksonException if the text is not valid YAML */
    static JsonNode read(String text) {
        return MAPPER.readTree(text);
    }
}
