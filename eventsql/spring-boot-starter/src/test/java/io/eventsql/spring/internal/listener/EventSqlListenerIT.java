package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.spring.EventSqlListener;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

/** An annotated method, from the application's start to its end. */
class EventSqlListenerIT extends ListenerFixture {
    static class Mailer {
        final Queue<String> texts = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(String text) {
            texts.add(text);
        }
    }

    @Test
    void method_ofABean_handlesEvents() {
        publish("1", "2");
        application().withBean(Mailer.class).run(context -> {
            publish("3");
            awaitLag(0);
            assertThat(context.getBean(Mailer.class).texts).containsExactly("1", "2", "3");
        });
        publish("4");
        application().withBean(Mailer.class).run(context -> {
            await().until(() -> context.getBean(Mailer.class).texts.size() == 1);
            assertThat(context.getBean(Mailer.class).texts).containsExactly("4");
        });
    }
}
