package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.spring.EventSqlListener;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.PersistenceContext;
import jakarta.persistence.Table;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.config.EnableJpaRepositories;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;

/** Listeners in JPA's transactions: entities, plain SQL and the offset together. */
class JpaListenerIT extends ListenerFixture {
    private JdbcTemplate jdbc;
    private ConfigurableApplicationContext application;

    /** An article with its counter. */
    @Entity
    @Table(name = "article")
    static class Article {
        @Id
        private String name;

        private int taken;

        protected Article() {}

        Article(String name) {
            this.name = name;
        }
    }

    interface Articles extends JpaRepository<Article, String> {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableJpaRepositories(basePackageClasses = JpaListenerIT.class, considerNestedRepositories = true)
    static class Persistence {
        @Bean
        Counter counter() {
            return new Counter();
        }

        @Bean
        Breaker breaker() {
            return new Breaker();
        }

        @Bean
        AtLeastOnce atLeastOnce() {
            return new AtLeastOnce();
        }
    }

    /** One application for all tests, because Hibernate takes long to start: its listeners have a stream each. */
    @BeforeAll
    void startApplication() {
        jdbc = new JdbcTemplate(pool);
        jdbc.execute("CREATE TABLE article (name text PRIMARY KEY, taken int NOT NULL CHECK (taken < 100))");
        jdbc.execute("CREATE TABLE effect (text text)");
        for (String name : List.of("counted", "broken", "own")) {
            eventSql.createStream(StreamSpec.of(name).withPartitions(1));
        }
        ApplicationContextInitializer<GenericApplicationContext> dataSource = context ->
                context.registerBean("dataSource", DataSource.class, () -> pool, bean -> bean.setDestroyMethodName(""));
        application = new SpringApplicationBuilder(Persistence.class)
                .web(WebApplicationType.NONE)
                .initializers(dataSource)
                .properties("spring.main.banner-mode=off", "eventsql.listener.retry-max-delay=1ms")
                .run();
    }

    @AfterAll
    void closeApplication() {
        application.close();
    }

    @BeforeEach
    void deleteRows() {
        jdbc.execute("TRUNCATE article, effect");
    }

    private int taken(String article) {
        return jdbc.queryForObject(
                "SELECT coalesce(sum(taken), 0) FROM article WHERE name = ?", Integer.class, article);
    }

    private int effects() {
        return jdbc.queryForObject("SELECT count(*) FROM effect", Integer.class);
    }

    static class Counter {
        final AtomicInteger calls = new AtomicInteger();

        @Autowired
        private Articles articles;

        @Autowired
        private JdbcTemplate jdbc;

        @PersistenceContext
        private EntityManager entities;

        @EventSqlListener(stream = "counted", consumer = "c", transactional = true)
        void on(StoredEvent event) {
            Article article = articles.findById(event.text()).orElseGet(() -> articles.save(new Article(event.text())));
            article.taken++; // written by a flush only
            jdbc.update("INSERT INTO effect VALUES (?)", event.text());
            if (calls.incrementAndGet() % 3 == 0) {
                entities.flush();
                throw new IllegalStateException("after the writes");
            }
        }
    }

    @Test
    void entitiesAndSql_afterFailures_happenOnce() {
        stream = "counted";
        String[] texts = new String[30];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = i % 2 == 0 ? "even" : "odd";
        }
        publish(texts);
        awaitLag(0);
        assertThat(taken("even")).isEqualTo(15);
        assertThat(taken("odd")).isEqualTo(15);
        assertThat(effects()).isEqualTo(30);
        assertThat(application.getBean(Counter.class).calls).hasValueGreaterThan(30);
    }

    static class Breaker {
        @Autowired
        private Articles articles;

        @Autowired
        private JdbcTemplate jdbc;

        @EventSqlListener(
                stream = "broken",
                consumer = "c",
                transactional = true,
                maxAttempts = "2",
                failurePolicy = "dead-letter")
        void on(StoredEvent event) {
            jdbc.update("INSERT INTO effect VALUES (?)", event.text());
            Article article = articles.save(new Article(event.text()));
            article.taken = event.text().equals("too many") ? 100 : 1; // refused when it is written
        }
    }

    @Test
    void constraint_brokenByTheLastFlush_isAFailureOfTheEvent() {
        stream = "broken";
        publish("few", "too many", "some");
        awaitLag(0);
        assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                .singleElement()
                .satisfies(event -> assertThat(event.error()).contains("article_taken_check"));
        assertThat(effects()).isEqualTo(2);
        assertThat(taken("few") + taken("some")).isEqualTo(2);
    }

    /** A consumer that is not transactional, whose method has a transaction of its own. */
    static class AtLeastOnce {
        @Autowired
        private Articles articles;

        @Transactional
        @EventSqlListener(stream = "own", consumer = "c")
        public void on(String text) {
            articles.save(new Article(text)).taken = 1;
        }
    }

    @Test
    void method_inItsOwnTransaction_commitsBeforeTheOffset() {
        stream = "own";
        publish("one", "two");
        await().untilAsserted(() -> assertThat(taken("one") + taken("two")).isEqualTo(2));
        awaitLag(0);
    }
}
