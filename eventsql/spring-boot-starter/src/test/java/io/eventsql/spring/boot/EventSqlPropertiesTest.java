package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Settings;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Each setting of the library is a property, with the same default. */
class EventSqlPropertiesTest {
    private static final String METADATA = "META-INF/spring-configuration-metadata.json";

    @Test
    void settings_withoutProperties_areTheDefaultsOfTheLibrary() throws Exception {
        Settings settings = bind(Map.of()).settings();

        for (Method setting : settings()) {
            assertThat(setting.invoke(settings)).as(setting.getName()).isEqualTo(setting.invoke(Settings.defaults()));
        }
    }

    static Stream<String> names() {
        return settings().stream().map(Method::getName);
    }

    @ParameterizedTest
    @MethodSource("names")
    void settings_withOneProperty_differInThat(String name) throws Exception {
        Method setting = Settings.class.getMethod(name);
        Object other = another(setting.invoke(Settings.defaults()));

        Settings settings =
                bind(Map.of("eventsql." + kebab(name), text(name, other))).settings();

        assertThat(setting.invoke(settings)).isEqualTo(other);
        for (Method rest : settings()) {
            boolean follows = name.equals("lease") && rest.getName().equals("heartbeat");
            if (!rest.equals(setting) && !follows) {
                assertThat(rest.invoke(settings)).as(rest.getName()).isEqualTo(rest.invoke(Settings.defaults()));
            }
        }
    }

    @Test
    void heartbeat_withAnotherLease_isAThirdOfIt() {
        Settings settings = bind(Map.of("eventsql.lease", "30s")).settings();

        assertThat(settings.heartbeat()).isEqualTo(Duration.ofSeconds(10));
    }

    @Test
    void metadata_hasAllSettingsWithTheirDefaults() throws Exception {
        Map<String, JsonNode> described = metadata();
        Map<String, Object> defaults = new LinkedHashMap<>();
        for (Method setting : settings()) {
            String property = "eventsql." + kebab(setting.getName());
            assertThat(described).containsKey(property);
            assertThat(described.get(property).path("description").asString())
                    .as(property)
                    .isNotBlank();
            if (!setting.getName().equals("heartbeat")) {
                assertThat(described.get(property).has("defaultValue"))
                        .as(property)
                        .isTrue();
                defaults.put(
                        property, described.get(property).get("defaultValue").asString());
            }
        }

        Settings settings = bind(defaults).settings();

        for (Method setting : settings()) {
            assertThat(setting.invoke(settings)).as(setting.getName()).isEqualTo(setting.invoke(Settings.defaults()));
        }
    }

    @Test
    void metadata_describesEveryProperty() throws Exception {
        assertThat(metadata())
                .containsKeys(
                        "eventsql.enabled",
                        "eventsql.create-missing-streams",
                        "eventsql.preferred-shard",
                        "eventsql.shards",
                        "eventsql.streams",
                        "eventsql.outbox.application-data-source",
                        "eventsql.template.unjoinable-transaction",
                        "eventsql.cloud-events.source",
                        "eventsql.cloud-events.type-prefix",
                        "eventsql.cloud-events.types");
        metadata()
                .forEach((name, property) -> assertThat(
                                property.path("description").asString())
                        .as(name)
                        .isNotBlank());
    }

    @Test
    void reference_listsEveryPropertyWithItsDefault() throws Exception {
        String reference = Files.readString(Path.of("../../docs/spring-boot-reference.md"));
        metadata().forEach((name, property) -> {
            if (name.startsWith("eventsql.listener.")) {
                String attribute = name.substring("eventsql.listener.".length());
                assertThat(reference).contains("| `" + attribute + "` | `");
            } else if (property.path("type").asString().startsWith("java.util.Map<") && !name.endsWith(".types")) {
                assertThat(reference).contains("`" + name + ".<");
            } else {
                String value = property.path("defaultValue").asString("");
                assertThat(reference).contains("| `" + name + "` | " + (value.isEmpty() ? "|" : "`" + value + "` |"));
            }
        });
    }

    @Test
    void toString_ofAShard_hidesThePassword() {
        EventSqlProperties properties = bind(Map.of(
                "eventsql.shards.a.url", "jdbc:postgresql://a/db",
                "eventsql.shards.a.password", "s3cret",
                "eventsql.shards.a.hikari.data-source-properties.sslpassword", "t0psecret"));

        assertThat(properties.toString()).contains("jdbc:postgresql://a/db").doesNotContain("s3cret", "t0psecret");
    }

    private static EventSqlProperties bind(Map<String, ?> properties) {
        return new Binder(new MapConfigurationPropertySource(properties))
                .bindOrCreate("eventsql", EventSqlProperties.class);
    }

    private static List<Method> settings() {
        List<Method> settings = new ArrayList<>(Arrays.stream(Settings.class.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers())
                        && !Modifier.isStatic(method.getModifiers())
                        && method.getParameterCount() == 0)
                .toList());
        assertThat(settings).hasSizeGreaterThan(15);
        return settings;
    }

    /** Returns another value within the range. */
    private static Object another(Object value) {
        return switch (value) {
            case Boolean yes -> !yes;
            case Integer number -> number * 2;
            case Long number -> number * 2;
            case Duration duration -> duration.plusMillis(1);
            case String text -> text + "_two";
            default -> throw new IllegalArgumentException("A setting of a new type: " + value.getClass());
        };
    }

    private static String text(String name, Object value) {
        return name.endsWith("Bytes") ? value + "B" : value.toString();
    }

    private static String kebab(String name) {
        return name.replaceAll("([A-Z])", "-$1").toLowerCase(Locale.ROOT);
    }

    private static Map<String, JsonNode> metadata() throws IOException {
        Map<String, JsonNode> properties = new TreeMap<>();
        ClassLoader loader = EventSqlProperties.class.getClassLoader();
        for (var file : java.util.Collections.list(loader.getResources(METADATA))) {
            try (InputStream content = file.openStream()) {
                JsonMapper.shared().readTree(content).get("properties").forEach(property -> {
                    if (property.get("name").asString().startsWith("eventsql.")) {
                        properties.put(property.get("name").asString(), Objects.requireNonNull(property));
                    }
                });
            }
        }
        return properties;
    }
}
