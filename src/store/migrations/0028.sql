-- Texts on which the services did not agree go when their writer goes. Of those kept before nobody knows whose they are.
delete from disagreements;
alter table disagreements add column user_id integer;

create index disagreements_by_user on disagreements (user_id, id);
create index disagreements_by_time on disagreements (created_at);

-- Of a user's interpretations and conversations only so many are kept. What belongs to a session goes with the session.
alter table interpretations add column of_session integer not null default 0 check (of_session in (0, 1));
update interpretations set of_session = 1 where trace_id in (select trace_id from session_calls);
drop index chats_by_user;
create index chats_by_user on chats (user_id, created_at, id);
