package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import java.sql.SQLException;
import java.time.Duration;

/** Publishes as fast as possible while a consumer handles and checks the events; the rate is that of the consumer. */
final class EndToEndInterval implements Variant {
    private final LimitsContext context;
    private final String stream;
    private final PublishVariant publish;

    EndToEndInterval(LimitsContext context, String stream, PublishVariant publish) {
        this.context = context;
        this.stream = stream;
        this.publish = publish;
    }

    @Override
    public String name() {
        return publish.name() + ", end to end";
    }

    /** The consumer starts at the head, so that it handles exactly what is published, and is deleted at the end. */
    @Override
    public MeasuredInterval run(Duration time) throws SQLException {
        ConsumerSpec consumer = ConsumerSpec.of(stream, "limits").withStartPosition(StartPosition.LATEST);
        ConsumedEvents consumed = new ConsumedEvents(context);
        MeasuredInterval measured;
        Subscription subscription = context.eventSql().subscribeBatch(consumer, consumed::accept);
        try {
            long start = context.clock().nanos();
            MeasuredInterval published = publish.run(time);
            long end = consumed.await(published.events());
            measured = new MeasuredInterval(published.events(), published.calls(), end - start);
        } finally {
            subscription.close();
        }
        context.eventSql().consumer(stream, consumer.name()).delete();
        return measured;
    }
}
