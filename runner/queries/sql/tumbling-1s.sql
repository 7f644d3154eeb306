-- For each sensor and second: how many positions, and the highest and average speed.
SELECT window_start, window_end, sensor, COUNT(*) AS positions, MAX(speed) AS speed_max, AVG(CAST(speed AS DOUBLE)) AS speed_avg
FROM TABLE(TUMBLE(TABLE positions, DESCRIPTOR(`at`), INTERVAL '1' SECOND))
GROUP BY window_start, window_end, sensor;
