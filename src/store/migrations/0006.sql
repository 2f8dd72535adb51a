-- One statement for whom a token speaks for and the user's number; and a key of the history that costs less to add to.

-- Owner: tokens. Whom a token speaks for, as every request asks, with what most answers need of the user.
create view bearers as
    select tokens.token_sha256, tokens.user_id, tokens.expires_at, tokens.replaced_at, tokens.family_expires_at,
        tokens.last_used_at, users.nickname, users.gender, users.birthday, users.signature, users.phone_number,
        users.email, users.created_at
    from tokens join users on users.id = tokens.user_id;

alter table history rename to old_history;
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
    unique (user_id, sequence),
    -- In this order, because ids that many clients take from the time stand together then, and not all over the index.
    unique (local_record_id, user_id)
) strict;

insert into history select * from old_history;
drop table old_history;
create index history_deactivated on history (deactivated_at) where deactivated_at is not null;
