package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.StoredEvent;
import io.eventsql.spring.InvalidListenerException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.scheduling.annotation.AnnotationAsyncExecutionInterceptor;
import org.springframework.scheduling.annotation.Async;

/** Methods that cannot be listeners are rejected with their name, the reason and what to do. */
class InvalidListenersTest {
    /** A method for each mistake, and some without one. */
    static class Methods {
        void two(String one, StoredEvent event, Integer two) {}

        void nothing() {}

        void listOfOne(List<String> texts) {}

        void payloadThatIsAList(@Payload List<String> texts) {}

        void one(String text) {}

        void setOfMany(Set<String> texts) {}

        @SuppressWarnings("rawtypes")
        void rawList(List texts) {}

        void lists(List<String> texts, List<StoredEvent> events) {}

        void connection(String text, Connection connection) {}

        void connections(List<Connection> connections) {}

        void headersNoMap(@Headers String headers) {}

        void expression(@Payload("id") String id) {}

        CompletableFuture<Void> asynchronous(String text) {
            return CompletableFuture.completedFuture(null);
        }

        String result(String text) {
            return text;
        }

        static void ofTheClass(String text) {}

        private void hidden(String text) {}

        final void last(String text) {}

        @Async
        void later(String text) {}
    }

    private static Method check(Object bean, String method, boolean batch, boolean transactional) {
        Method found = Arrays.stream(Methods.class.getDeclaredMethods())
                .filter(m -> m.getName().equals(method))
                .findFirst()
                .orElseThrow();
        return new ListenerMethodCheck(ListenerName.of("mailer", found), found, batch, transactional)
                .check(bean)
                .method();
    }

    static Stream<Arguments> mistakes() {
        return Stream.of(
                Arguments.of("two", false, "only one can be the payload: String (number 1), Integer (number 3)"),
                Arguments.of("nothing", false, "takes no parameter"),
                Arguments.of("listOfOne", false, "takes List<String> (number 1), but only one event at a time"),
                Arguments.of("one", true, "takes batches, but its parameter is not a List: String (number 1)"),
                Arguments.of("setOfMany", true, "its parameter is not a List: Set<String> (number 1)"),
                Arguments.of("rawList", true, "its parameter is not a List: List (number 1)"),
                Arguments.of("connection", false, "takes Connection (number 2), but is not transactional"),
                Arguments.of("connections", true, "takes List<Connection> (number 1)"),
                Arguments.of("headersNoMap", false, "@Headers that is not a Map: String (number 1)"),
                Arguments.of("expression", false, "has an expression in @Payload"),
                Arguments.of("asynchronous", false, "returns CompletableFuture"),
                Arguments.of("result", false, "returns String"),
                Arguments.of("ofTheClass", false, "is static"));
    }

    @ParameterizedTest
    @MethodSource("mistakes")
    void method_withAMistake_isRejected(String method, boolean batch, String problem) {
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> check(new Methods(), method, batch, false))
                .withMessageContaining("@EventSqlListener on bean 'mailer', Methods." + method + "(")
                .withMessageContaining(problem)
                .satisfies(e -> assertThat(e.action()).endsWith("."));
    }

    @Test
    void method_withoutAMistake_isAccepted() {
        assertThat(check(new Methods(), "payloadThatIsAList", false, false)).isNotNull();
        assertThat(check(new Methods(), "lists", true, false)).isNotNull();
        assertThat(check(new Methods(), "connection", false, true)).isNotNull();
        assertThat(check(new Methods(), "hidden", false, false)).isNotNull();
        assertThat(check(new Methods(), "last", false, false)).isNotNull();
    }

    @Test
    void method_privateOrFinalOfAProxy_isRejected() {
        ProxyFactory proxies = new ProxyFactory(new Methods());
        proxies.setProxyTargetClass(true);
        Object proxy = proxies.getProxy();
        assertThat(check(proxy, "one", false, false)).isNotNull();
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> check(proxy, "hidden", false, false))
                .withMessageContaining("is private, but the bean is a proxy");
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> check(proxy, "last", false, false))
                .withMessageContaining("is final, but the bean is a proxy");
    }

    @Async
    static class AsynchronousMethods extends Methods {}

    static Stream<Arguments> asynchronous() {
        return Stream.of(Arguments.of(new Methods(), "later"), Arguments.of(new AsynchronousMethods(), "one"));
    }

    /** Only a proxy makes a method asynchronous, and only with @EnableAsync. */
    @ParameterizedTest
    @MethodSource("asynchronous")
    void method_asynchronousByAProxy_isRejected(Object bean, String method) {
        assertThat(check(bean, method, false, false)).isNotNull();
        ProxyFactory proxies = new ProxyFactory(bean);
        proxies.setProxyTargetClass(true);
        assertThat(check(proxies.getProxy(), method, false, false)).isNotNull();
        proxies.addAdvice(new AnnotationAsyncExecutionInterceptor(null));
        Object proxy = proxies.getProxy();
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> check(proxy, method, false, false))
                .withMessageContaining("runs asynchronously, so that its end would not be awaited")
                .satisfies(e -> assertThat(e.action()).contains("Remove @Async"));
    }

    /** Does not declare the listener. */
    interface Other {
        void other();
    }

    static class WithInterface extends Methods implements Other {
        @Override
        public void other() {}
    }

    @Test
    void method_notInTheInterfaceOfAProxy_isRejected() {
        ProxyFactory proxies = new ProxyFactory(new WithInterface());
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> check(proxies.getProxy(), "one", false, false))
                .withMessageContaining("cannot be called through the bean's proxy");
    }
}
