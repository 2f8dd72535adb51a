-- An interpretation that the limit of tokens cut is no failure, but whoever reads it should know. Of those from before
-- nobody does.
alter table interpretations add column finish_reason text check (finish_reason in ('stop', 'length'));
