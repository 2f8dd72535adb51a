-- The calls of an hour are counted apart from their records, which their user may delete. Those from before count no more.
create table model_calls (
    id integer primary key,
    user_id integer not null,
    kind text not null check (kind in ('interpretation', 'chat')),
    created_at integer not null
) strict;

create index model_calls_by_user on model_calls (user_id, kind, created_at);
create index model_calls_by_time on model_calls (created_at);
