package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.EventTypes;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.io.support.SpringFactoriesLoader;
import tools.jackson.databind.json.JsonMapper;

/** The descriptions of a failed start, by the analyzers that Spring Boot finds. */
class FailureAnalyzersTest {

    private static FailureAnalysis analyze(RuntimeException failure) {
        Throwable start = new BeanCreationException("eventSql", "the bean cannot be created", failure);
        return Stream.of(
                        SpringFactoriesLoader.forDefaultResourceLocation()
                                .load(FailureAnalyzer.class, (type, name, problem) -> {})
                                .stream()
                                .filter(analyzer ->
                                        analyzer.getClass().getPackageName().startsWith("io.eventsql"))
                                .map(analyzer -> analyzer.analyze(start))
                                .filter(analysis -> analysis != null)
                                .toList())
                .peek(analyses -> assertThat(analyses).hasSize(1))
                .map(List::getFirst)
                .findFirst()
                .orElseThrow();
    }

    private static RuntimeException thrownBy(Runnable code) {
        try {
            code.run();
        } catch (RuntimeException e) {
            return e;
        }
        throw new AssertionError("nothing was thrown");
    }

    @Test
    void severalDataSources_describesTheChoice() {
        FailureAnalysis analysis = analyze(new AmbiguousDataSourceException(
                new NoUniqueBeanDefinitionException(DataSource.class, "orders", "customers")));

        assertThat(analysis.getDescription()).contains("orders", "customers");
        assertThat(analysis.getAction()).contains("@EventSqlDataSource", "eventsql.shards", "@Primary");
    }

    @Test
    void severalJsonMappers_describesTheChoice() {
        FailureAnalysis analysis = analyze(new AmbiguousJsonMapperException(
                new NoUniqueBeanDefinitionException(JsonMapper.class, "web", "events")));

        assertThat(analysis.getDescription()).contains("web", "events");
        assertThat(analysis.getAction()).contains("@Primary", "EventSerializer bean");
    }

    @Test
    void setting_outOfRange_namesTheProperty() {
        FailureAnalysis analysis = analyze(
                thrownBy(() -> Settings.builder().publishTimeout(Duration.ZERO).build()));

        assertThat(analysis.getDescription()).startsWith("eventsql.publish-timeout must be between PT0.01S and PT1H");
        assertThat(analysis.getAction()).isEqualTo("Change eventsql.publish-timeout.");
    }

    @Test
    void stream_invalid_namesItsDeclaration() {
        assertThat(analyze(thrownBy(() -> StreamSpec.of("new orders"))).getAction())
                .contains("eventsql.streams");
        assertThat(analyze(thrownBy(() -> StreamSpec.of("orders").withSegmentSize(1)))
                        .getAction())
                .contains("eventsql.streams[<name>].segment-size");
        assertThat(analyze(new InvalidInputException("consumer.name", "is odd")).getAction())
                .isEqualTo("Change consumer.name.");
    }

    @Test
    void pool_tooSmall_namesItsProperties() {
        assertThat(analyze(new InvalidInputException("dataSource[shard0]", "is a pool of 10 connections"))
                        .getAction())
                .contains("spring.datasource.hikari.maximum-pool-size", "eventsql.shards.<name>.pool-size");
    }

    private static final class Elsewhere {
        record Order(String id) {}
    }

    record Order(String id) {}

    @Test
    void eventTypes_withOneName_areBothNamed() {
        FailureAnalysis analysis = analyze(thrownBy(() -> new EventTypes(Order.class, Elsewhere.Order.class)));

        assertThat(analysis.getDescription()).contains(Order.class.getName(), Elsewhere.Order.class.getName());
        assertThat(analysis.getAction()).contains("@EventType");
    }

    @Test
    void databases_unusable_areDescribedWithTheirCauses() {
        FailureAnalysis analysis =
                analyze(new EventSqlException("No database answers", new SQLException("connection refused")));

        assertThat(analysis.getDescription()).isEqualTo("No database answers\nconnection refused");
        assertThat(analysis.getAction()).contains("spring.datasource");
        assertThat(analyze(new ShardIdentityException("twice")).getAction()).contains("once");
        assertThat(analyze(new UnknownStreamException("orders")).getAction())
                .contains("eventsql.create-missing-streams=true");
    }
}
