-- A filter that passes everything.
SELECT sensor, at_ms, x, y, speed, published_at FROM positions WHERE x >= 0;
