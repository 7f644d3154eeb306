package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.env.PropertiesPropertySourceLoader;
import org.springframework.boot.env.PropertySourceLoader;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MutablePropertySources;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.core.io.ByteArrayResource;

/** The characters of names below {@code eventsql.streams} that survive binding, as docs/spring-boot-reference.md states. */
class MapKeyBindingTest {

    private static EventSqlProperties bind(PropertySource<?>... sources) {
        ConfigurableEnvironment environment = new StandardEnvironment();
        MutablePropertySources all = environment.getPropertySources();
        all.remove(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME);
        for (PropertySource<?> source : sources) {
            all.addLast(source);
        }
        return Binder.get(environment).bindOrCreate("eventsql", EventSqlProperties.class);
    }

    private static PropertySource<?> load(PropertySourceLoader loader, String name, String text) throws IOException {
        return loader.load(name, new ByteArrayResource(text.getBytes(StandardCharsets.UTF_8)))
                .getFirst();
    }

    private static PropertySource<?> properties(String text) throws IOException {
        return load(new PropertiesPropertySourceLoader(), "properties", text);
    }

    private static PropertySource<?> yaml(String text) throws IOException {
        return load(new YamlPropertySourceLoader(), "yaml", text);
    }

    private static PropertySource<?> environment(String variable, String value) {
        return new SystemEnvironmentPropertySource(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME, Map.of(variable, value));
    }

    @Test
    void streamName_inProperties_keepsUnderscoresWithAndWithoutBrackets() throws Exception {
        assertThat(bind(properties("eventsql.streams.order_events.partitions=3"))
                        .streams())
                .containsOnlyKeys("order_events");
        assertThat(bind(properties("eventsql.streams[order_events].partitions=3"))
                        .streams())
                .containsOnlyKeys("order_events");
    }

    @Test
    void streamName_inYaml_keepsUnderscoresWithAndWithoutBrackets() throws Exception {
        assertThat(bind(yaml("eventsql:\n  streams:\n    order_events:\n      partitions: 3\n"))
                        .streams())
                .containsOnlyKeys("order_events");
        assertThat(bind(yaml("eventsql:\n  streams:\n    \"[order_events]\":\n      partitions: 3\n"))
                        .streams())
                .containsOnlyKeys("order_events");
    }

    @Test
    void environmentVariable_declaresOnlyStreamsWithoutUnderscores() {
        assertThat(bind(environment("EVENTSQL_STREAMS_ORDERS_PARTITIONS", "3"))
                        .streams()
                        .get("orders")
                        .partitions())
                .isEqualTo(3);
        assertThat(bind(environment("EVENTSQL_STREAMS_ORDER_EVENTS_PARTITIONS", "3"))
                        .streams())
                .as("ignored")
                .isEmpty();
    }

    @Test
    void environmentVariable_overridesADeclaredStream_withItsUnderscores() throws Exception {
        PropertySource<?> declared = properties("eventsql.streams.order_events.partitions=3");

        assertThat(bind(environment("EVENTSQL_STREAMS_ORDER_EVENTS_PARTITIONS", "7"), declared)
                        .streams())
                .containsOnlyKeys("order_events")
                .extractingByKey("order_events")
                .extracting(EventSqlProperties.Stream::partitions)
                .isEqualTo(7);
        assertThat(bind(environment("EVENTSQL_STREAMS_ORDEREVENTS_PARTITIONS", "7"), declared)
                        .streams())
                .as("declares another stream")
                .containsKeys("orderevents", "order_events");
    }

    @Test
    void placeholder_ofAnEnvironmentVariable_setsAValue() throws Exception {
        assertThat(bind(
                                environment("ORDER_PARTITIONS", "7"),
                                properties("eventsql.streams.order_events.partitions=${ORDER_PARTITIONS:3}"))
                        .streams()
                        .get("order_events")
                        .partitions())
                .isEqualTo(7);
    }

    @Test
    void otherCharacters_withoutBrackets_areDropped() throws Exception {
        assertThat(bind(properties("eventsql.streams.order/events.partitions=3"))
                        .streams())
                .containsOnlyKeys("orderevents");
        assertThat(bind(properties("eventsql.streams[order/events].partitions=3"))
                        .streams())
                .containsOnlyKeys("order/events");
        assertThat(bind(properties("eventsql.streams.Order-Events.partitions=3"))
                        .streams())
                .containsOnlyKeys("Order-Events");
        assertThat(bind(properties("eventsql.streams.order.events.partitions=3"))
                        .streams())
                .as("ignored")
                .isEmpty();
    }
}
