-- Attempts of a node by their age, so that whoever adds up what is reserved there can begin after those that ended long
-- ago: their entries stay until no transaction can see them any more.
DROP INDEX attempt_live_node;
CREATE INDEX attempt_live_node ON attempt_live (node_id, placed_ms);

-- For how long something took. No time that is kept: those are jobyard_now()'s.
CREATE FUNCTION jobyard_stopwatch_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
