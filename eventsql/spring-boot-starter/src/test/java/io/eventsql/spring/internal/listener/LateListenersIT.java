package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlListenerContainer;
import io.eventsql.spring.EventSqlListenerRegistry;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlListenerAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;

/** Listeners of beans that are created lazily. */
class LateListenersIT extends ListenerFixture {
    static class OnText {
        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(String text) {}
    }

    @EventSqlListener(stream = "${stream}", consumer = "typed")
    static class OfAClass {
        record Placed(String id) {}

        @EventSqlHandler
        void on(Placed placed) {}
    }

    /** Nothing uses the beans. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        JacksonAutoConfiguration.class,
        EventSqlAutoConfiguration.class,
        EventSqlTemplateAutoConfiguration.class,
        EventSqlListenerAutoConfiguration.class
    })
    static class Application {
        @Bean
        OnText onText() {
            return new OnText();
        }

        @Bean
        OfAClass ofAClass() {
            return new OfAClass();
        }
    }

    @Test
    void lazyInitialization_ofTheWholeApplication_exceptsListeners() {
        ApplicationContextInitializer<GenericApplicationContext> dataSource = context ->
                context.registerBean("dataSource", DataSource.class, () -> pool, bean -> bean.setDestroyMethodName(""));
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .initializers(dataSource)
                .properties("spring.main.lazy-initialization=true", "spring.main.banner-mode=off", "stream=" + stream)
                .run()) {
            assertThat(context.getBean(EventSqlListenerRegistry.class).containers())
                    .hasSize(2)
                    .allMatch(EventSqlListenerContainer::isRunning);
        }
    }

    @Test
    void firstListener_createdAfterTheStart_keepsTheProcessAlive() {
        await().until(() -> !keepingAlive());
        application()
                .withBean("late", OnText.class, OnText::new, bean -> bean.setLazyInit(true))
                .run(context -> {
                    assertThat(keepingAlive()).isFalse();
                    assertThat(context.getBean(OnText.class)).isNotNull();
                    assertThat(keepingAlive()).isTrue();
                });
        await().until(() -> !keepingAlive());
    }

    /** The stream of one does not exist at first. */
    static class Two {
        @EventSqlListener(stream = "${stream}", consumer = "c")
        void first(String text) {}

        @EventSqlListener(stream = "${stream}_missing", consumer = "c")
        void second(String text) {}
    }

    @Test
    void beanCreatedLate_whoseListenerCannotStart_canBeCreatedAgain() {
        application()
                .withBean("late", Two.class, Two::new, bean -> bean.setLazyInit(true))
                .run(context -> {
                    EventSqlListenerRegistry registry = context.getBean(EventSqlListenerRegistry.class);
                    assertThatThrownBy(() -> context.getBean(Two.class))
                            .rootCause()
                            .isInstanceOf(UnknownStreamException.class);
                    assertThat(registry.containers()).isEmpty();

                    eventSql.createStream(StreamSpec.of(stream + "_missing").withPartitions(1));
                    assertThat(context.getBean(Two.class)).isNotNull();
                    assertThat(registry.containers()).hasSize(2).allMatch(EventSqlListenerContainer::isRunning);
                });
    }
}
