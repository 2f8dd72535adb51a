-- Sessions of the current generation, and what stays of them.

-- Owner: sessions. Castings of the current generation. `sequence` numbers a user's sessions from 1 in the order in
-- which they were made. There is no cascade from the user: sessions must have become snapshots before an account goes.
create table sessions (
    id text primary key,                   -- 32 random hexadecimal digits
    user_id integer not null references users (id),
    sequence integer not null,
    question text not null,
    question_type text,
    method text not null check (method in ('three_coins', 'yarrow_stalks', 'manual')),
    lines text not null check (length(lines) = 6 and lines not glob '*[^6-9]*'), -- bottom up
    cast_at integer not null,              -- the client's own; never used to order or limit
    time_zone text not null,
    points_spent integer not null check (points_spent >= 0),
    idempotency_key text,                  -- of the request that made it
    created_at integer not null,
    trace_id text,                         -- of the first interpretation that succeeded, and what it was
    model text,
    duration_ms integer,
    interpreted_at integer,
    unique (user_id, sequence),
    check ((trace_id is null) = (interpreted_at is null))
) strict;

-- Owner: sessions. The model calls that a session caused: their records go with it.
create table session_calls (
    trace_id text primary key,
    session_id text not null references sessions (id) on delete cascade
) strict, without rowid;

create index session_calls_by_session on session_calls (session_id);

-- Owner: sessions. What stays of deleted sessions. Nothing in a row is found in any other table, and neither its key,
-- which is drawn for it alone, nor its place says when or for whom it was made.
create table session_snapshots (
    id blob primary key,
    question_type text,                    -- one of the usual ones, or 'other'
    method text not null check (method in ('three_coins', 'yarrow_stalks', 'manual')),
    lines text not null,
    primary_hexagram integer not null check (primary_hexagram between 1 and 64),
    relating_hexagram integer check (relating_hexagram between 1 and 64),
    nuclear_hexagram integer not null check (nuclear_hexagram between 1 and 64),
    day text not null,                     -- on which it was cast, without the time
    is_interpreted integer not null check (is_interpreted in (0, 1)),
    interpretation_tenths integer,         -- how long that took, in tenths of a second
    model text,
    points_spent integer not null
) strict, without rowid;
