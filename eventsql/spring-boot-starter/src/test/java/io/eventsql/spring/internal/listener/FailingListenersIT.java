package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.StoredEvent;
import io.eventsql.spring.EventPayloadException;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.OutgoingEvent;
import java.io.IOException;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.validation.Errors;
import org.springframework.validation.Validator;
import org.springframework.validation.annotation.Validated;

/** Invalid payloads and failing methods: the outcome for the event, and for the others. */
class FailingListenersIT extends ListenerFixture {
    record Amount(int value) {}

    private static String json(int value) {
        return "{\"value\":" + value + "}";
    }

    static class Single {
        final Queue<Integer> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "${policy}")
        void on(Amount amount) {
            got.add(amount.value());
        }
    }

    @ParameterizedTest
    @EnumSource
    void single_withInvalidPayload_followsThePolicyAtOnce(FailurePolicy policy) {
        publish(json(0), "no JSON", json(2));
        application()
                .withPropertyValues("policy=" + policy)
                .withBean(Single.class)
                .run(context -> {
                    Queue<Integer> got = context.getBean(Single.class).got;
                    if (policy == FailurePolicy.STOP) {
                        await().until(() -> state().status() == PartitionState.Status.STOPPED);
                        assertThat(state().error()).contains("cannot be passed to its listener");
                        assertThat(got).containsExactly(0);
                        return;
                    }
                    awaitLag(0);
                    List<ParkedEvent> parkedEvents =
                            eventSql.consumer(stream, "c").parkedEvents(10);
                    if (policy == FailurePolicy.DEAD_LETTER) {
                        assertThat(got).containsExactly(0, 2);
                        assertThat(parkedEvents).hasSize(1);
                    } else { // all have the same key
                        assertThat(got).containsExactly(0);
                        assertThat(parkedEvents).hasSize(2);
                    }
                    assertThat(parkedEvents.getFirst().error()).contains(EventPayloadException.class.getName());
                    assertThat(parkedEvents.getFirst().attempts()).isEqualTo(1);
                });
    }

    private PartitionState state() {
        return eventSql.consumer(stream, "c").state().getFirst();
    }

    static class Batch {
        final Queue<Integer> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", batch = true, failurePolicy = "dead-letter")
        void on(List<Amount> amounts) {
            amounts.forEach(amount -> got.add(amount.value()));
        }
    }

    @Test
    void batch_withInvalidPayloads_allOthersAreHandledOnceInOrder() {
        publish("first", json(1), json(2), "in between", json(4), json(5), "last");
        application().withBean(Batch.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Batch.class).got).containsExactly(1, 2, 4, 5);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).hasSize(3);
        });
    }

    static class Missing {
        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(@Header("type") String type, @Header(name = "count", required = false) Integer count) {}
    }

    @Test
    void header_missing_isNotRetried() {
        publish("text");
        publish("text", Map.of("type", "a", "count", "no number"));
        publish("text", Map.of("type", "a"));
        application().withBean(Missing.class).run(context -> {
            awaitLag(0);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .extracting(ParkedEvent::attempts)
                    .containsExactly(1, 1);
        });
    }

    static class Validating {
        final Queue<Integer> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", failurePolicy = "dead-letter")
        void on(@Payload @Validated Amount amount) {
            got.add(amount.value());
        }
    }

    /** Stands for Bean Validation's. */
    static class NotNegative implements Validator {
        @Override
        public boolean supports(Class<?> type) {
            return type == Amount.class;
        }

        @Override
        public void validate(Object target, Errors errors) {
            if (((Amount) target).value() < 0) {
                errors.reject("negative", "must not be negative");
            }
        }
    }

    @Test
    void payload_notValid_isNotRetried() {
        publish(json(1), json(-1), json(2));
        application().withBean(NotNegative.class).withBean(Validating.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Validating.class).got).containsExactly(1, 2);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .singleElement()
                    .satisfies(event -> assertThat(event.error()).contains("must not be negative"));
        });
    }

    /** Needs a registry that is unavailable at first. */
    static class WithRegistry implements EventSerializer {
        final AtomicInteger asked = new AtomicInteger();

        @Override
        public Event serialize(String stream, OutgoingEvent event) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Object deserialize(StoredEvent event, Type type) {
            if (asked.incrementAndGet() < 3) {
                throw new IllegalStateException("the registry is unavailable");
            }
            return new Amount(7);
        }
    }

    @Test
    void serializer_failsForAnotherReason_isRetried() {
        publish("text");
        application()
                .withPropertyValues("policy=STOP")
                .withBean(WithRegistry.class)
                .withBean(Single.class)
                .run(context -> {
                    awaitLag(0);
                    assertThat(context.getBean(Single.class).got).containsExactly(7);
                });
    }

    static class Flaky {
        final Queue<String> tried = new ConcurrentLinkedQueue<>();

        @EventSqlListener(
                stream = "${stream}",
                consumer = "c",
                maxAttempts = "3",
                fatal = IllegalArgumentException.class,
                failurePolicy = "dead-letter")
        void on(String text) throws Exception {
            tried.add(text);
            switch (text) {
                case "fatal" -> throw new IllegalArgumentException("never again");
                case "checked" -> throw new Exception("a checked one");
                default -> {}
            }
        }
    }

    @Test
    void method_fails_isRetriedAsItsExceptionsSay() {
        publish("fatal", "checked", "fine");
        application().withBean(Flaky.class).run(context -> {
            awaitLag(0);
            assertThat(context.getBean(Flaky.class).tried)
                    .containsExactly("fatal", "checked", "checked", "checked", "fine");
        });
    }

    interface Checked {
        void on(String text) throws Exception;
    }

    static class CheckedFailure implements Checked {
        final AtomicInteger calls = new AtomicInteger();

        @Override
        @EventSqlListener(
                stream = "${stream}",
                consumer = "c",
                fatal = IOException.class,
                failurePolicy = "dead-letter")
        public void on(String text) {
            calls.incrementAndGet();
        }
    }

    /** Throws a checked exception that the method does not declare, so that the proxy wraps it. */
    static Object proxied(CheckedFailure target) {
        ProxyFactory proxies = new ProxyFactory(target);
        proxies.setProxyTargetClass(true);
        proxies.addAdvice((MethodInterceptor) call -> {
            call.proceed();
            throw new IOException("thrown by an advice");
        });
        return proxies.getProxy();
    }

    @Test
    void exception_wrappedByAProxy_countsAsItself() {
        publish("text");
        CheckedFailure target = new CheckedFailure();
        application().withBean(Object.class, () -> proxied(target)).run(context -> {
            awaitLag(0);
            assertThat(target.calls).hasValue(1);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10))
                    .singleElement()
                    .satisfies(
                            event -> assertThat(event.error()).startsWith("java.io.IOException: thrown by an advice"));
        });
    }

    @Test
    @ExtendWith(OutputCaptureExtension.class)
    void failure_isLoggedWithPositionAndKey(CapturedOutput output) {
        publish("fatal");
        application().withBean(Flaky.class).run(context -> {
            awaitLag(0);
            assertThat(output)
                    .containsPattern(
                            "Listener Flaky#on\\[1 args\\] of consumer c failed on the event at EventPosition\\[stream="
                                    + stream + ", shard=0, partition=0, offset=0\\] \\(key key\\):"
                                    + " java.lang.IllegalArgumentException: never again");
        });
    }

    @Test
    void properties_ofTheListener_overrideItsAnnotation() {
        publish("checked", "fine");
        application()
                .withPropertyValues("eventsql.listeners." + stream + "-c.max-attempts=1")
                .withBean(Flaky.class)
                .run(context -> {
                    awaitLag(0);
                    assertThat(context.getBean(Flaky.class).tried).containsExactly("checked", "fine");
                });
    }
}
