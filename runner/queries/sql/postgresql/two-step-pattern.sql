SELECT key, at_ms, upper_at_ms, upper_published_at
FROM (SELECT key, at_ms, x,
             min(at_ms) FILTER (WHERE y >= 9000) OVER following AS upper_at_ms,
             min(published_at) FILTER (WHERE y >= 9000) OVER following AS upper_published_at
      FROM (SELECT key, published_at, convert_from(value, 'UTF8')::jsonb AS j FROM eventsql.events_positions
            WHERE key = 'ball') AS e,
           LATERAL (SELECT (j ->> 'at_ms')::bigint AS at_ms, (j ->> 'x')::int AS x, (j ->> 'y')::int AS y) AS t
      WINDOW following AS (PARTITION BY key ORDER BY at_ms ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)) AS e
WHERE x < 1000 AND upper_at_ms - at_ms < 1000;
