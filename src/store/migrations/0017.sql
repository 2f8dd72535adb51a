-- Frequent violators are users whose own texts were refused: what a model answered is told apart in the index.

drop index violations_by_time;
create index violations_by_time on violations (created_at, id, user_id, content_type);
