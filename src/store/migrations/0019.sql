-- A user's records are counted by an index that has all that a count asks for. The rule that it replaces can only be
-- taken away with its table.
alter table history rename to history_before;
drop index history_deactivated;

create table history (
    id integer primary key,                -- not the key below: rows of this size in a key make a deep tree
    user_id integer not null references users (id) on delete cascade,
    sequence integer not null,
    local_record_id text not null,
    question_type text,
    question text,
    json_data text,                        -- JSON exactly as it came
    ai_result text,
    client_timestamp text,                 -- JSON exactly as it came; never used to order or limit
    created_at integer not null,
    updated_at integer not null,
    deactivated_at integer,                -- hidden since; deleted some weeks later
    -- In this order, because ids that many clients take from the time stand together then, and not all over the index.
    unique (local_record_id, user_id)
) strict;

insert into history
select id, user_id, sequence, local_record_id, question_type, question, json_data, ai_result, client_timestamp, created_at, updated_at, deactivated_at
from history_before
order by id;

drop table history_before;

create index history_by_user on history (user_id, sequence, deactivated_at, question_type);
create index history_deactivated on history (deactivated_at) where deactivated_at is not null;
