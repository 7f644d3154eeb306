-- Every event, as it is.
SELECT sensor, `value`, published_at FROM position_values;
