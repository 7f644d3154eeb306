SELECT to_timestamp(min(at_ms) / 1000.0) AS window_start, to_timestamp((max(at_ms) + 200) / 1000.0) AS window_end, key,
       count(*), max(speed)
FROM (SELECT *, count(*) FILTER (WHERE is_first) OVER (PARTITION BY key ORDER BY at_ms) AS session
      FROM (SELECT key, at_ms, speed, at_ms - lag(at_ms) OVER (PARTITION BY key ORDER BY at_ms) > 200 AS is_first
            FROM (SELECT key, convert_from(value, 'UTF8')::jsonb AS j FROM eventsql.events_positions) AS e,
                 LATERAL (SELECT (j ->> 'at_ms')::bigint AS at_ms, (j ->> 'speed')::int AS speed) AS t
            WHERE speed >= 80) AS e) AS e
GROUP BY key, session;
