package io.eventsql.spring.boot;

import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches if there are properties {@code eventsql.shards.*}. */
final class OnShardsCondition extends SpringBootCondition {

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("EventSQL shards");
        boolean any = Binder.get(context.getEnvironment())
                .bind("eventsql.shards", Bindable.mapOf(String.class, Object.class))
                .map(shards -> !shards.isEmpty())
                .orElse(false);
        return any
                ? ConditionOutcome.match(message.found("properties").items("eventsql.shards.*"))
                : ConditionOutcome.noMatch(message.didNotFind("properties").items("eventsql.shards.*"));
    }
}
