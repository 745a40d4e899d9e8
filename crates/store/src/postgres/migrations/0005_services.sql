-- Services: what a service's attempt went through, its task process leaving and being started again.
--
-- The JSON of a model::ServiceRun; null for a task, and until a service's task process left for the first time.

ALTER TABLE attempt_live ADD COLUMN service text
  CONSTRAINT attempt_live_service CHECK (service IS NULL OR phase >= 2);
ALTER TABLE attempt ADD COLUMN service text;
