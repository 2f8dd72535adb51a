-- What payment providers reported is listed by verdict, and that and feedback are counted, without reading every text. A
-- user's feedback is read in its order and not sorted.
create index payment_callbacks_by_verdict on payment_callbacks (verdict, id);
create index feedback_of_user on feedback (user_id, id) where user_id is not null;
create index feedback_by_time on feedback (created_at);
