-- A filter that passes a half.
SELECT sensor, at_ms, x, y, speed, published_at FROM positions WHERE x >= 5000;
