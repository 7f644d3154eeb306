SELECT key, (j ->> 'at_ms')::bigint, (j ->> 'x')::int, (j ->> 'y')::int, (j ->> 'speed')::int, published_at
FROM (SELECT key, published_at, convert_from(value, 'UTF8')::jsonb AS j FROM eventsql.events_positions) AS e
WHERE (j ->> 'x')::int >= 7500;
