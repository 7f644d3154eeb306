-- A filter that passes a quarter.
SELECT sensor, at_ms, x, y, speed, published_at FROM positions WHERE x >= 7500;
