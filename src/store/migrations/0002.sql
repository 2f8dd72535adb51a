-- The ledger, idempotency keys, administrators and their audit.

-- Owner: ledger. What a user has of an asset. The balance is a cache of the account's entries: it equals their sum and
-- the last one's `balance_after`. No foreign key, because the account outlives its user under the user's number.
-- A balance stays below 2^53, so that clients whose numbers are floats read it exactly.
create table balances (
    user_id integer not null,
    asset text not null check (asset in ('coin', 'point')),
    balance integer not null check (balance between 0 and 9007199254740991),
    last_sequence integer not null check (last_sequence >= 0),
    suspended_at integer,                  -- found to disagree with its entries: nothing is posted until it is repaired
    primary key (user_id, asset)
) strict, without rowid;

create index balances_suspended on balances (suspended_at) where suspended_at is not null;

-- Owner: ledger. Every change of a balance, for ever. `seq` numbers all entries and `sequence` those of one account,
-- both from 1 and without gaps. (asset, kind, ref) makes every business event count once; `ref` names the event
-- without being bound to it, so that the entry outlives it. An entry that is its own event has none, and is not in
-- that index: the most frequent change, a use, then writes to one tree less.
create table ledger_entries (
    seq integer primary key,
    user_id integer not null,
    asset text not null check (asset in ('coin', 'point')),
    sequence integer not null check (sequence > 0),
    delta integer not null check (delta <> 0),
    balance_after integer not null check (balance_after >= 0),
    kind text not null check (kind in ('topup', 'consume', 'reset', 'adjust', 'signup_bonus', 'cast', 'invite_bonus',
        'invitee_bonus', 'parked', 'restored', 'refund')),
    ref text,
    created_at integer not null,
    unique (user_id, asset, sequence)
) strict;

create unique index ledger_entries_by_event on ledger_entries (asset, kind, ref) where ref is not null;

create trigger ledger_entries_are_not_changed before update on ledger_entries
begin
    select raise(abort, 'ledger entries are not changed');
end;

create trigger ledger_entries_are_not_deleted before delete on ledger_entries
begin
    select raise(abort, 'ledger entries are not deleted');
end;

-- Owner: ledger. Every change of an account that a person or a repair made, chained: `hash` is the SHA-256 over the
-- row and the hash of the row before it.
create table ledger_audit (
    id integer primary key,
    actor text not null,
    action text not null,                  -- increase, reset, repair, …
    user_id integer not null,
    asset text not null check (asset in ('coin', 'point')),
    reason text not null,
    balance_before integer not null,
    balance_after integer not null,
    request_id text not null,
    created_at integer not null,
    previous_hash blob not null,
    hash blob not null
) strict;

create index ledger_audit_by_user on ledger_audit (user_id, id);

create trigger ledger_audit_is_not_changed before update on ledger_audit
begin
    select raise(abort, 'the audit ledger is not changed');
end;

create trigger ledger_audit_is_not_deleted before delete on ledger_audit
begin
    select raise(abort, 'the audit ledger is not deleted');
end;

-- Owner: idempotency. The first answer to a request that carried an Idempotency-Key, stored with what it did.
-- Ids grow with time, so that the oldest are found without an index over time.
create table idempotency_keys (
    id integer primary key,
    caller text not null,                  -- user:…, admin:…, key:…
    route text not null,                   -- method and template
    key text not null,
    request_sha256 blob not null,
    status integer not null,
    body blob not null,
    created_at integer not null,
    unique (caller, route, key)
) strict;

-- Owner: admins. The people who operate the service. There is none until the command line makes one.
create table admins (
    id integer primary key autoincrement,
    name text not null unique,
    password_hash text not null,           -- Argon2id, PHC format
    created_at integer not null
) strict;

-- Owner: admins. Sessions of administrators, kept as SHA-256.
create table admin_tokens (
    token_sha256 blob primary key,
    admin_id integer not null references admins (id) on delete cascade,
    expires_at integer not null,
    last_used_at integer not null,
    created_at integer not null
) strict, without rowid;

create index admin_tokens_by_admin on admin_tokens (admin_id);
create index admin_tokens_by_expiry on admin_tokens (expires_at);

-- Owner: admins. Keys of programs that operate the service, kept as SHA-256. A revoked one keeps its label taken.
create table api_keys (
    id integer primary key autoincrement,
    label text not null unique,
    key_sha256 blob not null unique,
    created_at integer not null,
    last_used_at integer,
    revoked_at integer
) strict;

-- Owner: admins. Sign-ins of administrators that failed or are being tried: what may be tried is counted from them.
create table admin_attempts (
    id integer primary key,
    name text not null,
    client_network text not null,
    tried_at integer not null
) strict;

create index admin_attempts_by_name on admin_attempts (name, tried_at);
create index admin_attempts_by_client on admin_attempts (client_network, tried_at);
create index admin_attempts_by_time on admin_attempts (tried_at);

-- Owner: audit. One row for everything that an administrator saw or changed. Append-only.
create table audit (
    id integer primary key,
    at integer not null,
    actor text not null,                   -- admin:NAME, key:LABEL, cli
    action text not null,                  -- method and route template, or the command
    user_id integer,                       -- whom it was about, if it was about one
    reason text,
    outcome integer not null,              -- the answer's status; 200 for a command that was done
    client_ip text,
    request_id text not null
) strict;

create index audit_by_user on audit (user_id, id) where user_id is not null;
create index audit_by_actor on audit (actor, id);

create trigger audit_is_not_changed before update on audit
begin
    select raise(abort, 'audit rows are not changed');
end;

create trigger audit_is_not_deleted before delete on audit
begin
    select raise(abort, 'audit rows are not deleted');
end;
