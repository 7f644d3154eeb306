-- Sprints: the times in which a sensor is fast, with pauses of less than 200 ms.
SELECT window_start, window_end, sensor, COUNT(*) AS positions, MAX(speed) AS speed_max
FROM TABLE(SESSION(
    TABLE fast_positions PARTITION BY sensor, DESCRIPTOR(`at`), INTERVAL '0.2' SECOND))
GROUP BY window_start, window_end, sensor;
