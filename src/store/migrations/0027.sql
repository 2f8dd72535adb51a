-- Texts on which the services did not agree go when their writer goes. Of those kept before nobody knows whose they are.
delete from disagreements;
alter table disagreements add column user_id integer;

create index disagreements_by_user on disagreements (user_id, id);
create index disagreements_by_time on disagreements (created_at);
