-- Where a request inserts a row, checks compare with each value: SQLite made a temporary tree of the list for every row.
-- What the tables hold stays as it is, and only the text of their checks changes, as SQLite's documentation of ALTER TABLE
-- describes it: a ledger of years would take long to copy.
pragma writable_schema = on;

update sqlite_schema set sql = 'CREATE TABLE users (
    id integer primary key autoincrement,
    phone_number text unique,
    email text unique,
    nickname text not null default '''',
    gender text not null default ''unknown''
        check (gender = ''unknown'' or gender = ''male'' or gender = ''female'' or gender = ''other''),
    birthday text,
    signature text not null default '''',
    created_at integer not null,
    check (phone_number is not null or email is not null)
) strict'
where type = 'table' and name = 'users';

update sqlite_schema set sql = 'CREATE TABLE sessions (
    id text primary key,
    user_id integer not null references users (id),
    sequence integer not null,
    question text not null,
    question_type text,
    method text not null check (method = ''three_coins'' or method = ''yarrow_stalks'' or method = ''manual''),
    lines text not null check (length(lines) = 6 and lines not glob ''*[^6-9]*''),
    cast_at integer not null,
    time_zone text not null,
    points_spent integer not null check (points_spent >= 0),
    idempotency_key text,
    created_at integer not null,
    trace_id text,
    model text,
    duration_ms integer,
    interpreted_at integer,
    unique (user_id, sequence),
    check ((trace_id is null) = (interpreted_at is null))
) strict'
where type = 'table' and name = 'sessions';

update sqlite_schema set sql = 'CREATE TABLE ledger_entries (
    seq integer primary key,
    user_id integer not null,
    asset text not null check (asset in (''coin'', ''point'')),
    sequence integer not null check (sequence > 0),
    delta integer not null check (delta <> 0),
    balance_after integer not null check (balance_after >= 0),
    kind text not null check (kind = ''consume'' or kind = ''cast'' or kind = ''topup'' or kind = ''reset'' or kind = ''adjust''
        or kind = ''signup_bonus'' or kind = ''invite_bonus'' or kind = ''invitee_bonus'' or kind = ''parked''
        or kind = ''restored'' or kind = ''refund''),
    ref text,
    created_at integer not null,
    unique (user_id, asset, sequence)
) strict'
where type = 'table' and name = 'ledger_entries';

pragma writable_schema = reset;

-- Keys of requests are found by caller and key, on fewer pages.
alter table idempotency_keys rename to idempotency_keys_before;

create table idempotency_keys (
    id integer primary key,
    caller text not null,
    route text not null,
    key text not null,
    request_sha256 blob not null,
    status integer not null,
    body blob not null,
    created_at integer not null
) strict;

insert into idempotency_keys (id, caller, route, key, request_sha256, status, body, created_at)
select id, caller, route, key, request_sha256, status, body, created_at from idempotency_keys_before;
drop table idempotency_keys_before;
create index idempotency_keys_by_caller on idempotency_keys (caller, key);
