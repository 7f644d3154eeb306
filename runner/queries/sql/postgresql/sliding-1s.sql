SELECT to_timestamp((window_ms + 0) / 1000.0) AS window_start, to_timestamp((window_ms + 1000) / 1000.0) AS window_end, key, count(*), max(speed), avg(speed)::float8
FROM (SELECT key, (j ->> 'speed')::int AS speed, at_ms - at_ms % 100 - slide AS window_ms
      FROM (SELECT key, convert_from(value, 'UTF8')::jsonb AS j FROM eventsql.events_positions) AS e,
           LATERAL (SELECT (j ->> 'at_ms')::bigint AS at_ms) AS t,
           generate_series(0, 1000 - 100, 100) AS slide) AS w
GROUP BY window_ms, key;
