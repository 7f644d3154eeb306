package io.eventsql.spring.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.Subscription;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.StreamCreator;
import io.eventsql.spring.listener.EventSqlListenerPostProcessor.FoundListener;
import io.eventsql.spring.listener.InvalidListenerException.ListenerName;
import io.eventsql.spring.observation.EventSqlObservations;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.validation.Validator;

/** Makes containers of annotated methods: reads annotation and properties together, and checks what can be checked. */
public final class ListenerFactory {
    private static final Logger LOG = LoggerFactory.getLogger(ListenerFactory.class);

    private final ConfigurableListableBeanFactory beans;
    private final EventSql eventSql;
    private final EventSqlListenerRegistry registry;
    private final ListenerArguments arguments;
    private final ListenerSettings defaults;
    private final Map<String, ListenerSettings> byId;
    private final StreamCreator streams;
    private final EventSqlObservations observations;

    /** What all listeners share. */
    public record Shared(
            ConfigurableListableBeanFactory beans,
            EventSql eventSql,
            EventSqlListenerRegistry registry,
            EventSerializer serializer,
            StreamCreator streams,
            EventSqlObservations observations) {}

    /**
     * Makes listeners with these settings.
     *
     * @param defaults of all listeners
     * @param byId overrides by the listeners' ids, in whatever spelling properties allow
     */
    public ListenerFactory(Shared shared, ListenerSettings defaults, Map<String, ListenerSettings> byId) {
        this.beans = shared.beans();
        this.eventSql = shared.eventSql();
        this.registry = shared.registry();
        this.streams = shared.streams();
        this.observations = shared.observations();
        this.arguments = new ListenerArguments(
                shared.serializer(), ApplicationConversionService.getSharedInstance(), beans, validator(beans));
        this.defaults = defaults;
        this.byId = new HashMap<>();
        byId.forEach((id, settings) -> this.byId.put(uniform(id), settings));
    }

    /** The application's; where several are, the one that is primary, or none. */
    private static @Nullable Validator validator(ConfigurableListableBeanFactory beans) {
        return beans.getBeanProvider(Validator.class).getIfUnique();
    }

    /** Spelled as environment variables and property files can: without regard to case, dashes and underscores. */
    private static String uniform(String id) {
        return id.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }

    /** @throws InvalidListenerException if one of them cannot be a listener */
    void registerAll(List<FoundListener> found) {
        found.forEach(this::register);
        Set<String> unused = new HashSet<>(byId.keySet());
        registry.containers().forEach(container -> unused.remove(uniform(container.id())));
        if (!unused.isEmpty()) {
            LOG.warn("eventsql.listeners.* names {}, but the listeners are {}", unused, registry.containers());
        }
    }

    private void register(FoundListener found) {
        ListenerName name = new ListenerName(found.bean(), found.method());
        boolean known = beans.containsBean(found.bean());
        if (known && !beans.isSingleton(found.bean())) {
            throw new InvalidListenerException(name, "is of a bean that is no singleton", "Move it to a singleton.");
        }
        // What others get injected: it may be a proxy made early, which the post-processor does not see.
        boolean made = known && !beans.isCurrentlyInCreation(found.bean());
        Object bean = made ? beans.getBean(found.bean()) : found.instance();
        ListenerAttributes attributes = new ListenerAttributes(name, found.annotation(), beans::resolveEmbeddedValue);
        ListenerSettings settings = byId.getOrDefault(uniform(attributes.id()), ListenerSettings.NONE)
                .orElse(attributes.settings())
                .orElse(defaults);
        ConsumerSpec spec = spec(name, attributes, settings);
        requireNoOther(name, attributes.id(), spec);

        boolean batch = found.annotation().batch();
        boolean transactional = found.annotation().transactional();
        if (spec.keyConcurrency() > 1 && (batch || transactional)) {
            throw new InvalidListenerException(
                    name,
                    "has keyConcurrency " + spec.keyConcurrency() + " and is " + (batch ? "a batch" : "a transactional")
                            + " listener",
                    "Leave out keyConcurrency, or handle single events outside of transactions.");
        }
        Method method = new ListenerMethodCheck(name, batch, transactional).check(bean);
        ListenerMethod handler =
                new ListenerMethod(bean, method, batch, transactional, arguments, spec.name(), observations);
        Supplier<Subscription> subscribe = transactional
                ? subscribe(
                        spec,
                        batch,
                        handler,
                        ManagedTransactions.of(name, beans, attributes.transactionManagers(), eventSql.shards()))
                : subscribe(spec, batch, handler);
        registry.add(new EventSqlListenerContainer(
                attributes.id(), name.toString(), spec, !Boolean.FALSE.equals(settings.autoStartup()), () -> {
                    streams.require(spec.stream());
                    return subscribe.get();
                }));
    }

    private static ConsumerSpec spec(ListenerName name, ListenerAttributes attributes, ListenerSettings settings) {
        try {
            return settings.applyTo(ConsumerSpec.of(attributes.stream(), attributes.consumer()));
        } catch (IllegalArgumentException e) {
            throw new InvalidListenerException(
                    name,
                    "has an invalid setting: " + e.getMessage(),
                    "Correct the attribute, eventsql.listeners." + attributes.id() + ".* or eventsql.listener.*.",
                    e);
        }
    }

    private void requireNoOther(ListenerName name, String id, ConsumerSpec spec) {
        for (EventSqlListenerContainer other : registry.containers()) {
            if (other.spec().stream().equals(spec.stream())
                    && other.spec().name().equals(spec.name())) {
                throw new InvalidListenerException(
                        name,
                        "has the stream and the consumer of " + other + ": each event would reach one of them only",
                        "Give them different consumers to let both have all events.");
            }
            if (other.id().equals(id)) {
                throw new InvalidListenerException(name, "has the id of " + other, "Give it another id.");
            }
        }
    }

    private Supplier<Subscription> subscribe(ConsumerSpec spec, boolean batch, ListenerMethod method) {
        return batch
                ? () -> eventSql.subscribeBatch(spec, events -> method.handle(events, null))
                : () -> eventSql.subscribe(spec, event -> method.handle(List.of(event), null));
    }

    private Supplier<Subscription> subscribe(
            ConsumerSpec spec, boolean batch, ListenerMethod method, ManagedTransactions transactions) {
        TransactionalEventBatchHandler handler =
                (events, connection) -> transactions.joined(events.getFirst(), () -> method.handle(events, connection));
        return batch
                ? () -> eventSql.subscribeTransactionalBatch(spec, transactions, handler)
                : () -> eventSql.subscribeTransactional(
                        spec, transactions, (event, connection) -> handler.handle(List.of(event), connection));
    }
}
