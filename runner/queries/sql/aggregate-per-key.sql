-- Running totals of each sensor: a new row whenever they change.
SELECT sensor, COUNT(*) AS positions, SUM(CAST(speed AS BIGINT)) AS speed_sum, MIN(speed) AS speed_min, MAX(speed) AS speed_max,
       MAX(at_ms) AS last_at_ms
FROM positions
GROUP BY sensor;
