package io.eventsql.spring.internal.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.Subscription;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlListenerContainer;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.internal.StreamCreator;
import io.eventsql.spring.internal.listener.ListenerPostProcessor.FoundListener;
import java.util.ArrayList;
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
import org.springframework.validation.Validator;

/** Creates containers of annotated methods: merges annotation and properties, and checks the methods. */
public final class ListenerFactory {
    private static final Logger LOG = LoggerFactory.getLogger(ListenerFactory.class);

    private final ConfigurableListableBeanFactory beans;
    private final EventSql eventSql;
    private final ListenerRegistry registry;
    private final HandlerFactory handlers;
    private final ListenerSettings defaults;
    private final Map<String, ListenerSettings> byId;
    private final StreamCreator streams;

    /** The dependencies of all listeners. */
    public record Shared(
            ConfigurableListableBeanFactory beans,
            EventSql eventSql,
            ListenerRegistry registry,
            EventSerializer serializer,
            EventTypes types,
            StreamCreator streams,
            EventSqlObservations observations) {}

    /**
     * @param defaults settings of all listeners
     * @param byId settings by the listeners' ids, in any spelling that properties allow; of several spellings of an id, the
     *     first one has precedence
     */
    public ListenerFactory(Shared shared, ListenerSettings defaults, Map<String, ListenerSettings> byId) {
        this.beans = shared.beans();
        this.eventSql = shared.eventSql();
        this.registry = shared.registry();
        this.streams = shared.streams();
        this.handlers =
                new HandlerFactory(beans, shared.serializer(), shared.types(), validator(beans), shared.observations());
        this.defaults = defaults;
        this.byId = new HashMap<>();
        byId.forEach((id, settings) -> this.byId.merge(uniform(id), settings, ListenerSettings::orElse));
    }

    /** Returns the application's validator; of several, the primary one, or none. */
    private static @Nullable Validator validator(ConfigurableListableBeanFactory beans) {
        return beans.getBeanProvider(Validator.class).getIfUnique();
    }

    /** Returns an id without case, dashes and underscores, which environment variables cannot express. */
    private static String uniform(String id) {
        return id.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }

    /**
     * Registers all of them or none.
     *
     * @throws InvalidListenerException if one of them cannot be a listener
     */
    void registerAll(List<FoundListener> found) {
        List<ListenerContainer> registered = new ArrayList<>(found.size());
        try {
            found.forEach(one -> registered.add(register(one)));
        } catch (RuntimeException | Error e) { // a bean that is created late does not exist then
            registered.forEach(registry::remove);
            throw e;
        }
        Set<String> unused = new HashSet<>(byId.keySet());
        registry.containers().forEach(container -> unused.remove(uniform(container.id())));
        if (!unused.isEmpty()) {
            LOG.warn(
                    "eventsql.listeners.* has settings for unknown listeners {}; the listeners are {}",
                    unused,
                    registry.containers());
        }
    }

    private ListenerContainer register(FoundListener found) {
        ListenerName name = found.name();
        boolean known = beans.containsBean(found.bean());
        if (known && !beans.isSingleton(found.bean())) {
            throw name.invalid("belongs to a bean that is no singleton", "Move it to a singleton.");
        }
        // The bean that is injected elsewhere: it may be a proxy created early, which the post-processor does not see.
        boolean created = known && !beans.isCurrentlyInCreation(found.bean());
        Object bean = created ? beans.getBean(found.bean()) : found.instance();
        ListenerAttributes attributes = new ListenerAttributes(name, found.annotation(), beans::resolveEmbeddedValue);
        ListenerSettingSources sources = new ListenerSettingSources(
                attributes.id(),
                byId.getOrDefault(uniform(attributes.id()), ListenerSettings.NONE),
                attributes.settings(),
                defaults);
        ListenerSettings settings = sources.merged();
        ConsumerSpec spec = translated(
                name, sources, () -> settings.applyTo(ConsumerSpec.of(attributes.stream(), attributes.consumer())));
        requireUnique(name, attributes.id(), spec);

        boolean batch = found.annotation().batch();
        boolean transactional = found.annotation().transactional();
        if (spec.keyConcurrency() > 1 && (batch || transactional)) {
            throw name.invalid(
                    "has keyConcurrency " + spec.keyConcurrency() + " and is " + (batch ? "a batch" : "a transactional")
                            + " listener",
                    "Remove keyConcurrency, or handle single events outside of transactions.");
        }
        HandlerFactory.Calling calling = new HandlerFactory.Calling(
                spec.name(), batch, transactional, Boolean.TRUE.equals(settings.requireTypeHeader()));
        ListenerHandler handler = found.method() == null
                ? handlers.ofClass(name, bean, found.type(), calling)
                : handlers.ofMethod(name, bean, found.method(), calling);
        Supplier<Subscription> subscribe = transactional
                ? subscribe(
                        spec,
                        batch,
                        handler,
                        ManagedTransactions.of(name, beans, attributes.transactionManagers(), eventSql.shards()))
                : subscribe(spec, batch, handler);
        ListenerContainer container = new ListenerContainer(
                attributes.id(), name.toString(), spec, !Boolean.FALSE.equals(settings.autoStartup()), () -> {
                    streams.createIfMissing(spec.stream());
                    return translated(name, sources, subscribe);
                });
        registry.add(container);
        return container;
    }

    /** Has a rejected value reported with the attribute or property that sets it. */
    private static <T> T translated(ListenerName name, ListenerSettingSources sources, Supplier<T> call) {
        try {
            return call.get();
        } catch (InvalidInputException e) {
            String problem = sources.describe(e);
            throw name.invalid(
                    "has an invalid setting: " + problem, "Correct " + problem.split(" must ", 2)[0] + ".", e);
        }
    }

    private void requireUnique(ListenerName name, String id, ConsumerSpec spec) {
        for (EventSqlListenerContainer other : registry.containers()) {
            if (other.spec().stream().equals(spec.stream())
                    && other.spec().name().equals(spec.name())) {
                throw name.invalid(
                        "has the stream and the consumer of " + other
                                + ", so that each event would reach only one of them",
                        "Give them different consumers, so that both get all events.");
            }
            if (other.id().equals(id)) {
                throw name.invalid("has the id of " + other, "Give it another id.");
            }
        }
    }

    private Supplier<Subscription> subscribe(ConsumerSpec spec, boolean batch, ListenerHandler method) {
        return batch
                ? () -> eventSql.subscribeBatch(spec, events -> method.handle(events, null))
                : () -> eventSql.subscribe(spec, event -> method.handle(List.of(event), null));
    }

    private Supplier<Subscription> subscribe(
            ConsumerSpec spec, boolean batch, ListenerHandler method, ManagedTransactions transactions) {
        TransactionalEventBatchHandler handler =
                (events, connection) -> transactions.joined(events.getFirst(), () -> method.handle(events, connection));
        return batch
                ? () -> eventSql.subscribeTransactionalBatch(spec, transactions, handler)
                : () -> eventSql.subscribeTransactional(
                        spec, transactions, (event, connection) -> handler.handle(List.of(event), connection));
    }
}
