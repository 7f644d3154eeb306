SELECT key, value, published_at FROM eventsql.events_positions;
