-- What model calls use and cost, conversations, and the reports on interpretations.

alter table interpretations add column cost_micros integer;
alter table interpretations add column failover text;

drop index interpretations_by_user;
create index interpretations_by_user on interpretations (user_id, created_at, id);
create index interpretations_by_time on interpretations (created_at);
create index interpretations_by_duration on interpretations (duration_ms, id);
create index interpretations_failed on interpretations (id) where status in ('failed', 'interrupted');

-- Owner: chat. One row a turn of a conversation, written before the call and finished after it. Nothing that was said
-- is kept.
create table chats (
    id integer primary key,
    trace_id text not null unique,
    user_id integer not null,
    messages integer not null,             -- turns that the client brought
    status text not null check (status in ('running', 'succeeded', 'failed', 'cancelled', 'interrupted')),
    provider text not null,
    model text not null,
    prompt_version text not null,
    prompt_tokens integer,
    completion_tokens integer,
    cost_micros integer,
    failover text,
    first_token_ms integer,
    duration_ms integer,
    error_class text,
    created_at integer not null,
    finished_at integer,
    check ((status = 'running') = (finished_at is null))
) strict;

create index chats_by_user on chats (user_id, id);
create index chats_running on chats (id) where status = 'running';

-- Owner: budget. What model calls used, by day and how they ended. Outlives the calls' own records.
create table model_usage (
    day text not null,                     -- yyyy-mm-dd where the service is at home
    kind text not null check (kind in ('interpretation', 'chat', 'test')),
    provider text not null,
    model text not null,                   -- that was asked for
    outcome text not null,
    calls integer not null,
    prompt_tokens integer not null,
    completion_tokens integer not null,
    cost_micros integer not null,
    duration_ms integer not null,
    primary key (day, kind, provider, model, outcome)
) strict, without rowid;

-- Owner: budget. What the daily budgets are counted from: a row a user and day, and one a day for everybody (user 0).
-- What running calls may use is reserved until they are settled.
create table model_spending (
    day text not null,
    user_id integer not null,
    tokens integer not null,
    cost_micros integer not null,
    reserved_tokens integer not null check (reserved_tokens >= 0),
    reserved_cost_micros integer not null check (reserved_cost_micros >= 0),
    primary key (day, user_id)
) strict, without rowid;

create index model_spending_reserved on model_spending (day) where reserved_tokens > 0;
