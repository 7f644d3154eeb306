-- The same for the last minute, every second.
SELECT window_start, window_end, sensor, COUNT(*) AS positions, MAX(speed) AS speed_max, AVG(CAST(speed AS DOUBLE)) AS speed_avg
FROM TABLE(HOP(TABLE positions, DESCRIPTOR(`at`), INTERVAL '1' SECOND, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, sensor;
