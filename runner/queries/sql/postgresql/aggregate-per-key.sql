SELECT key, count(*), sum(speed), min(speed), max(speed), max(at_ms)
FROM (SELECT key, convert_from(value, 'UTF8')::jsonb AS j FROM eventsql.events_positions) AS e,
     LATERAL (SELECT (j ->> 'at_ms')::bigint AS at_ms, (j ->> 'speed')::int AS speed) AS t
GROUP BY key;
