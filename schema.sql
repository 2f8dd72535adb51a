-- The schema of Yarrow's database.
--
-- Once a release contains it, this file does not change: later changes are steps that src/store/migrate.rs lists.
--
-- Times are integer milliseconds since 1970, UTC. The owner of a table is the one module in src/domain whose SQL reads
-- and writes it. Invariants that SQL can hold are constraints; the comments state the others.
--
-- Checks of tables that requests insert into compare with `or`: for `in` with more than two values SQLite builds a
-- temporary tree at every insert.

-- Owner: settings. Switches and marks of the installation, by name.
create table settings (
    name text primary key,
    value text not null,
    updated_at integer not null
) strict, without rowid;

-- Owner: users. One row a person, whichever address they sign in with.
-- Ids are never given twice (autoincrement), because entries elsewhere outlive the account.
create table users (
    id integer primary key autoincrement,
    phone_number text unique,              -- canonical: national digits of the default region, E.164 for others
    email text unique,                     -- trimmed and lower-cased
    nickname text not null default '',
    gender text not null default 'unknown'
        check (gender = 'unknown' or gender = 'male' or gender = 'female' or gender = 'other'),
    birthday text,                         -- yyyy-mm-dd
    signature text not null default '',
    created_at integer not null,
    check (phone_number is not null or email is not null)
) strict;

-- Owner: codes. At most one live verification code for an address and purpose.
-- Only an HMAC of the code is kept. A code is tried by one operation of the one thread that writes.
create table codes (
    address text not null,                 -- HMAC under the server key
    purpose text not null check (purpose in ('sign_in', 'address')),
    code_hmac blob not null,
    tries_left integer not null check (tries_left >= 0),
    expires_at integer not null,
    primary key (address, purpose)
) strict, without rowid;

-- Owner: codes. One row for every message that was sent or may have been sent: the sending budgets are counted from
-- it over rolling windows, so that neither a restart nor another address of the caller resets them.
create table code_sends (
    id integer primary key,
    address text not null,                 -- HMAC under the server key
    client_network text not null,          -- the IPv4 address, or the /64 of the IPv6 address
    sent_at integer not null
) strict;

create index code_sends_by_address on code_sends (address, sent_at);
create index code_sends_by_client on code_sends (client_network, sent_at);
create index code_sends_by_time on code_sends (sent_at);

-- Owner: tokens. Sign-in tokens, kept as SHA-256 and found by their user, whom a token names: an index of the hashes would
-- be many times as large. A family is one sign-in and the tokens that replaced each other since; at most one token of a
-- family is not replaced. A replaced token works for a short grace, and ends its family when it is used after that. What
-- most answers tell of a user stands in their tokens too, because a request whose token is not known looks it up, and a
-- second row far from it costs as much again.
create table tokens (
    id integer primary key,
    user_id integer not null references users (id) on delete cascade,
    token_sha256 blob not null,
    phone_number text,                     -- the user's, as are the next two
    email text,
    user_created_at integer not null,
    expires_at integer not null,
    replaced_at integer,
    family blob not null,                  -- the SHA-256 of the family's first token
    family_expires_at integer not null,    -- no token of the family outlives this
    created_at integer not null,
    label text not null,                   -- what the device calls itself
    signed_in_at integer not null,         -- when the family began
    last_used_at integer not null          -- to the hour
) strict;

create index tokens_by_user on tokens (user_id);
create index tokens_by_expiry on tokens (expires_at);

create trigger tokens_know_their_user after update of phone_number, email, created_at on users
begin
    update tokens set phone_number = new.phone_number, email = new.email, user_created_at = new.created_at
    where user_id = new.id;
end;

-- Owner: tokens. One row, whose number goes up whenever a token may be worth something else than before, so that
-- whoever has looked tokens up knows when to do so again. That one was used is nothing of the kind, and neither is a new
-- one.
create table token_changes (
    id integer primary key check (id = 0),
    number integer not null
) strict;

create trigger tokens_change after update of token_sha256, user_id, phone_number, email, user_created_at, expires_at,
    replaced_at, family_expires_at on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

create trigger tokens_end after delete on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

-- Owner: words. The local list of content moderation, and the phrases that are innocent although they contain one.
create table words (
    folded text primary key,               -- what the word is compared as: no two words fold alike
    word text not null,
    type text not null,
    by_sound integer not null check (by_sound in (0, 1)), -- found by its pronunciation too
    created_at integer not null
) strict, without rowid;

create index words_by_type on words (type, folded);

create table allowed_phrases (
    phrase text primary key,
    created_at integer not null
) strict, without rowid;

-- Owner: words. The changes of both, numbered without gaps: the last number is the list's version, by which every
-- process notices a change. `many` stands for a change that is not told word by word. Old ones are forgotten.
create table word_changes (
    version integer primary key autoincrement,
    at integer not null,
    action text not null check (action in ('added', 'removed', 'many')),
    folded text not null,
    word text,
    type text,
    by_sound integer
) strict;

-- Owner: violations. One row for every text of a user, and every answer to one, that was refused. The text is kept
-- masked only.
create table violations (
    id integer primary key,
    user_id integer not null,
    content_type text not null check (content_type in ('nickname', 'signature', 'question', 'answer')),
    violation_type text not null,
    words text not null,                   -- JSON array
    masked_text text not null,
    provider text not null,
    created_at integer not null
) strict;

create index violations_by_time on violations (created_at, id, user_id, content_type);
create index violations_by_user on violations (user_id, created_at);
create index violations_by_type on violations (violation_type, created_at);
create index violations_by_content on violations (content_type, created_at);

-- Owner: moderation. Texts on which the local list and the external service did not agree, masked. Only the newest are
-- kept, and none of a user who has left: it is the services that are judged.
create table disagreements (
    id integer primary key autoincrement,
    content_type text not null check (content_type in ('nickname', 'signature', 'question', 'answer')),
    decided_by text not null,              -- whose word counted
    local_allowed integer not null check (local_allowed in (0, 1)),
    external_allowed integer not null check (external_allowed in (0, 1)),
    words text not null,                   -- JSON array: what the local list found
    labels text not null,                  -- JSON array: what the external service found
    masked_text text not null,
    created_at integer not null,
    user_id integer,                       -- whose text it is; null for an operator's
    check (local_allowed <> external_allowed)
) strict;

create index disagreements_by_user on disagreements (user_id, id);
create index disagreements_by_time on disagreements (created_at);

-- Owner: history. The castings that first-generation clients store, keyed by the client's own record id.
-- `sequence` numbers a user's records from 1 in the order in which the server first saw them: the newest and one, which
-- is unique because one thread writes.
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
    json_data_crc32 integer,               -- as long as it is right, json_data need not be parsed to be passed on
    -- In this order, because ids that many clients take from the time stand together then, and not all over the index.
    unique (local_record_id, user_id)
) strict;

-- With all that a count asks for: the records themselves lie far apart, and a count would visit each of them.
create index history_by_user on history (user_id, sequence, deactivated_at, question_type);
create index history_deactivated on history (deactivated_at) where deactivated_at is not null;

-- Owner: interpretation. One row a model call, written before the call and finished after it.
create table interpretations (
    id integer primary key,
    trace_id text not null unique,         -- 32 hexadecimal digits, W3C Trace Context
    user_id integer not null,
    question_type text,
    question text not null,                -- empty once its user was erased
    divination_data text,                  -- JSON exactly as it came
    status text not null check (status in ('running', 'succeeded', 'failed', 'cancelled', 'interrupted')),
    provider text not null,
    model text not null,
    prompt_version text not null,
    result text,
    prompt_tokens integer,
    completion_tokens integer,
    first_token_ms integer,
    duration_ms integer,
    error_class text,
    created_at integer not null,
    finished_at integer,
    cost_micros integer,                   -- by the price list, in millionths
    failover text,                         -- why the first model did not answer, if the second was asked
    finish_reason text check (finish_reason in ('stop', 'length')), -- null unless it succeeded
    of_session integer not null default 0 check (of_session in (0, 1)), -- goes with a session, and not with its age
    check ((status = 'running') = (finished_at is null))
) strict;

create index interpretations_by_user on interpretations (user_id, created_at, id);
create index interpretations_by_time on interpretations (created_at);
create index interpretations_by_duration on interpretations (duration_ms, id);
create index interpretations_failed on interpretations (id) where status in ('failed', 'interrupted');
create index interpretations_running on interpretations (id) where status = 'running';

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

create index chats_by_user on chats (user_id, created_at, id);
create index chats_running on chats (id) where status = 'running';

-- Owner: model_calls. When calls of a user began, for the hour in which they are counted: their records may be gone by
-- then, with a session that was deleted.
create table model_calls (
    id integer primary key,
    user_id integer not null,
    kind text not null check (kind in ('interpretation', 'chat')),
    created_at integer not null
) strict;

create index model_calls_by_user on model_calls (user_id, kind, created_at);
create index model_calls_by_time on model_calls (created_at);

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

-- Owner: sessions. Castings of the current generation. `sequence` numbers a user's sessions from 1 in the order in
-- which they were made. There is no cascade from the user: sessions must have become snapshots before an account goes.
create table sessions (
    id text primary key,                   -- 32 random hexadecimal digits
    user_id integer not null references users (id),
    sequence integer not null,
    question text not null,
    question_type text,
    method text not null check (method = 'three_coins' or method = 'yarrow_stalks' or method = 'manual'),
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

-- Owner: invites. The code by which a user invites others, made when it is first asked for.
create table invite_codes (
    user_id integer primary key references users (id) on delete cascade,
    code text not null unique,
    invited integer not null default 0,    -- users who redeemed it
    rewarded integer not null default 0,   -- how many of them earned its owner points
    created_at integer not null
) strict;

-- Owner: invites. Who redeemed a code, and whose, as long as both are there.
create table invites (
    invitee_id integer primary key references users (id) on delete cascade,
    inviter_id integer references users (id) on delete set null,
    created_at integer not null
) strict;

create index invites_by_inviter on invites (inviter_id);

-- Owner: invites. What an address has had of invites, for ever: an account that is made again begins where the old one
-- stood. Only an HMAC of the address is kept.
create table invite_addresses (
    address_hmac blob primary key,
    has_redeemed integer not null check (has_redeemed in (0, 1)),
    rewarded integer not null check (rewarded >= 0)
) strict, without rowid;

-- Owner: network_log. Entries of the network log, written in batches behind the requests and numbered in their order
-- without gaps. `entries` is a JSON array of [at, user_id, client_ip, method, route, status, duration_us, request_id],
-- at most 8192 of them. The route is the template, never the path. A number in place of a method or a route is a place in
-- `texts`, and one in place of a request's id stands for its last eight hexadecimal digits.
create table access_log_blocks (
    first_entry integer primary key,
    last_entry integer not null,
    first_at integer not null,             -- the earliest and the latest entry; clocks may have been set back
    last_at integer not null,
    entries text not null,
    base_at integer not null default 0,    -- what the entries' times count from
    id_start text not null default '',     -- what ids that are numbers begin with
    texts text not null default '[]'       -- a JSON array
) strict;

-- Owner: network_log. One row a request, for whoever looks by hand; it unpacks every block that is asked for.
create view access_log as
    select first_entry + entry.key as id, base_at + (entry.value ->> 0) as at, entry.value ->> 1 as user_id,
        entry.value ->> 2 as client_ip,
        iif(typeof(entry.value ->> 3) = 'integer', texts ->> (entry.value ->> 3), entry.value ->> 3) as method,
        iif(typeof(entry.value ->> 4) = 'integer', texts ->> (entry.value ->> 4), entry.value ->> 4) as route,
        entry.value ->> 5 as status, entry.value ->> 6 as duration_us,
        iif(typeof(entry.value ->> 7) = 'integer', id_start || printf('%08x', entry.value ->> 7), entry.value ->> 7)
            as request_id
    from access_log_blocks, json_each(access_log_blocks.entries) as entry;

-- Owner: network_log. Runs of entries of the network log, in its order and without gaps between them, that have been
-- counted. A row is written last of what belongs to it.
create table access_log_pieces (
    id integer primary key,
    first_entry integer not null,
    last_entry integer not null,
    first_at integer not null,             -- the earliest and the latest entry; clocks may have been set back
    last_at integer not null
) strict;

-- Owner: network_log. How many entries of a piece a client address (ip:…) or a user (user:…) has, and how many failed.
create table access_log_subjects (
    piece integer not null,
    subject text not null,
    entries integer not null,
    primary key (piece, subject)
) strict, without rowid;

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
    kind text not null check (kind = 'consume' or kind = 'cast' or kind = 'topup' or kind = 'reset' or kind = 'adjust'
        or kind = 'signup_bonus' or kind = 'invite_bonus' or kind = 'invitee_bonus' or kind = 'parked'
        or kind = 'restored' or kind = 'refund'),
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

-- Owner: known_emails. Email addresses that have come to an account, by their HMAC under the server key, for ever: each
-- had its bonus. For a time also the points that the address's account had when it was deleted; `parking` is their name
-- in the ledger.
create table known_emails (
    email_hmac blob primary key,
    known_since integer not null,
    parked_points integer check (parked_points > 0),
    parking text,
    parked_at integer,
    check ((parked_points is null) = (parked_at is null) and (parked_points is null) = (parking is null))
) strict, without rowid;

create index known_emails_parked on known_emails (parked_at) where parked_at is not null;

-- Owner: idempotency. The first answer to a request that carried an Idempotency-Key, stored with what it did.
-- Ids grow with time, so that the oldest are found without an index over time.
create table idempotency_keys (
    id integer primary key,
    caller text not null,                  -- user:…, admin:…, key:…
    route text not null,                   -- path of the endpoint; only POST requests have keys
    key text not null,
    request_sha256 blob not null,
    status integer not null,
    body blob not null,                    -- empty once what it told of was deleted
    created_at integer not null
) strict;

-- In this order, because keys that begin with the time stand together then, and not all over the index. Without the route,
-- and so not unique by itself: what is shorter lies on fewer pages. That a key counts once is seen to by the one thread
-- that writes.
create index idempotency_keys_by_key on idempotency_keys (key, caller);

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

-- Owner: admins. Second factors of administrators: secrets of authenticator apps, sealed under the server key. One
-- counts from its confirmation on.
create table admin_second_factors (
    admin_id integer primary key references admins (id) on delete cascade,
    sealed_secret blob not null,
    confirmed_at integer,
    created_at integer not null
) strict;

-- Owner: admins. Codes of second factors that were used, by their step of 30 seconds since 1970. Those of a clock that was
-- ahead stay until their time is over.
create table admin_used_codes (
    admin_id integer not null references admin_second_factors (admin_id) on delete cascade,
    step integer not null,
    primary key (admin_id, step)
) strict, without rowid;

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
create index audit_by_time on audit (at);

create trigger audit_is_not_changed before update on audit
begin
    select raise(abort, 'audit rows are not changed');
end;

create trigger audit_is_not_deleted before delete on audit
begin
    select raise(abort, 'audit rows are not deleted');
end;

-- Owner: confirmations. Tokens by which an administrator confirms what cannot be taken back, kept as SHA-256.
create table confirmations (
    token_sha256 blob primary key,
    actor text not null,
    action text not null,
    expires_at integer not null
) strict, without rowid;

create index confirmations_by_expiry on confirmations (expires_at);

-- Owner: payments. Orders of coins. An order carries its own price, so that a changed price list changes no order, and
-- has no foreign key, so that it stays payable when its user is gone. States only move forward (created, paid,
-- credited, refunded; created, closed; closed, paid), but for `review`, out of which a person lets an order.
create table payment_orders (
    id integer primary key,
    order_no text not null unique,
    user_id integer not null,
    channel text not null,                 -- the gateway that the order was made with
    amount_fen integer not null check (amount_fen > 0),
    coin_count integer not null check (coin_count > 0),
    state text not null check (state in ('created', 'paid', 'credited', 'closed', 'refunded', 'review')),
    reason text,                           -- why a person must look, or how a person settled it
    trade_no text,                         -- the provider's number, once money came in
    refunded_fen integer not null default 0 check (refunded_fen >= 0),
    coins_returned integer not null default 0 check (coins_returned >= 0),
    coins_written_off integer not null default 0 check (coins_written_off >= 0),
    returns integer not null default 0,    -- ledger entries by which coins were taken back
    checks integer not null default 0,     -- times that the provider was asked on schedule
    next_check_at integer,                 -- when the provider is asked again; null once nothing is open
    asked_at integer,                      -- when the user last had the provider asked
    created_at integer not null,
    expires_at integer not null,           -- when the order string ends
    paid_at integer,
    credited_at integer,
    closed_at integer,
    refunded_at integer,
    app_id text,                           -- the provider's app that it was made for; null for orders of before
    paid_fen integer not null default 0 check (paid_fen >= 0),    -- what came in, which need not be the price
    settled_at integer,                    -- when a person last decided about it
    check (coins_returned + coins_written_off <= coin_count),
    check (state <> 'review' or reason is not null)
) strict;

create index payment_orders_by_user on payment_orders (user_id, id);
create index payment_orders_by_state on payment_orders (state, id);
create index payment_orders_by_time on payment_orders (created_at, id);
create index payment_orders_due on payment_orders (channel, next_check_at) where next_check_at is not null;
create index payment_orders_open on payment_orders (user_id, amount_fen, coin_count, created_at) where state = 'created';
create unique index payment_orders_by_trade on payment_orders (channel, trade_no) where trade_no is not null;

-- Owner: payments. Everything that came in as a notification, as it came, and what was made of it. What the provider did
-- not sign is kept up to a number.
create table payment_callbacks (
    id integer primary key,
    received_at integer not null,
    channel text not null,
    is_genuine integer not null check (is_genuine in (0, 1)),
    verdict text not null check (verdict in ('credited', 'paid', 'closed', 'refunded', 'unchanged', 'review', 'rejected',
        'failed')),
    reason text,
    order_no text,                         -- as claimed; proved if the message is genuine
    trade_no text,
    notify_id text,
    replay_of integer,                     -- the callback that was judged again
    form blob not null                     -- the body, to the byte
) strict;

create index payment_callbacks_by_order on payment_callbacks (order_no, id) where order_no is not null;
create index payment_callbacks_by_verdict on payment_callbacks (verdict, id);
create index payment_callbacks_refused on payment_callbacks (id) where is_genuine = 0;

-- Owner: payments. Money that was to go back. The number makes repetition safe, here and at the provider.
create table payment_refunds (
    refund_no text primary key,
    order_no text not null,
    amount_fen integer not null check (amount_fen > 0),
    state text not null check (state in ('requested', 'succeeded', 'refused')),
    reason text not null,
    actor text not null,
    failure text,                          -- the provider's code of the last failure, or what a person knew
    asked_at integer not null,             -- when the provider was last asked for or about it
    created_at integer not null,
    finished_at integer,
    told_at integer,                       -- when somebody who asked for it was told that it was done
    check ((state = 'requested') = (finished_at is null))
) strict, without rowid;

create index payment_refunds_by_order on payment_refunds (order_no, created_at);
create index payment_refunds_open on payment_refunds (asked_at) where state = 'requested';

-- Owner: payments. The books of the sandbox gateway: the provider's side, not ours.
create table sandbox_trades (
    order_no text primary key,
    version integer not null,
    trade text not null                    -- JSON
) strict, without rowid;

-- Owner: preferences. What users want. Who never chose has no row. System notices cannot be switched off.
create table preferences (
    user_id integer primary key references users (id) on delete cascade,
    account integer not null check (account in (0, 1)),
    activity integer not null check (activity in (0, 1)),
    promotion integer not null check (promotion in (0, 1)),
    locale text check (locale in ('zh', 'en')),
    time_zone text,
    updated_at integer not null
) strict;

-- Owner: notifications. What was sent, each once, whatever the number of its readers. Broadcasts are numbered from 1 by
-- `ordinal`, and no number is given twice; ids and numbers grow together.
create table notifications (
    id integer primary key autoincrement,
    ordinal integer unique,                -- of a broadcast; null for what is addressed to single users
    kind text not null check (kind in ('system', 'account', 'activity', 'promotion')),
    title text not null,
    body text not null,
    payload text not null,                 -- JSON
    created_at integer not null,
    expires_at integer,
    is_live integer not null default 1 check (is_live in (0, 1)) -- 0 once the job has seen that it expired
) strict;

create index notifications_broadcast on notifications (id, ordinal) where ordinal is not null;
create index notifications_broadcast_by_time on notifications (created_at, ordinal) where ordinal is not null;
create index notifications_expiring on notifications (is_live, expires_at) where expires_at is not null;

-- Owner: notifications. The broadcasts from 512 × block + 1 on, up to 512 of them: which are there, and of which kind.
-- One that was deleted or has expired keeps its byte, as 0.
create table notification_blocks (
    block integer primary key,
    kinds blob not null                    -- a byte for each: 0 gone, 1 system, 2 account, 3 activity, 4 promotion
) strict;

-- Owner: notifications. How many users have read each broadcast of a block.
create table notification_readers (
    block integer primary key,
    counts blob not null                   -- four bytes for each, the highest first
) strict;

-- Owner: notifications. Whom a notification is addressed to that is no broadcast. Up to a number are kept for a user.
create table notification_recipients (
    user_id integer not null references users (id) on delete cascade,
    notification_id integer not null references notifications (id) on delete cascade,
    kind text not null,                    -- the notification's
    expires_at integer,                    -- the notification's
    primary key (user_id, notification_id)
) strict, without rowid;

create index notification_recipients_by_notification on notification_recipients (notification_id);

-- Owner: notifications. What users read one by one, and when first.
create table notification_reads (
    user_id integer not null references users (id) on delete cascade,
    notification_id integer not null,
    read_at integer not null,
    primary key (user_id, notification_id)
) strict, without rowid;

-- Owner: notifications. The same for broadcasts, to be counted: a bit for each broadcast of the block. What a mark
-- covers is forgotten here.
create table notification_read_blocks (
    user_id integer not null references users (id) on delete cascade,
    block integer not null,
    bits blob not null,
    primary key (user_id, block)
) strict, without rowid;

-- Owner: notifications. "All read", each time that something was unread: everything up to an id, which was then read
-- unless it was before.
create table notification_marks (
    user_id integer not null references users (id) on delete cascade,
    through integer not null,              -- a notification's id
    ordinal integer not null,              -- the newest broadcast's number at that time
    marked_at integer not null,
    primary key (user_id, through)
) strict, without rowid;

-- Owner: feedback. What people wrote. User and number are claims unless a token proved the user.
create table feedback (
    id integer primary key,
    user_id integer,
    phone_number text,
    is_verified integer not null check (is_verified in (0, 1)),
    client_network text,                   -- of a stranger, for a day: what they may send is counted by it
    content text not null,
    created_at integer not null,
    check (is_verified = 0 or user_id is not null)
) strict;

create index feedback_by_user on feedback (user_id, is_verified, created_at) where user_id is not null;
create index feedback_by_phone on feedback (phone_number) where phone_number is not null;
create index feedback_by_client on feedback (client_network, created_at) where client_network is not null;
create index feedback_of_user on feedback (user_id, id) where user_id is not null;
create index feedback_by_time on feedback (created_at); -- what all of it is counted by
create index feedback_by_client_time on feedback (created_at) where client_network is not null;

-- Owner: releases. Versions of the app. One without a platform is for all of them.
create table releases (
    id integer primary key,
    version text not null,                 -- semantic version
    version_code integer not null check (version_code >= 0),
    platform text,
    is_required integer not null check (is_required in (0, 1)), -- clients before it must update
    notes text not null,
    download_url text,
    published_at integer not null
) strict;

create unique index releases_by_platform on releases (coalesce(platform, ''), version_code);
create index releases_by_code on releases (version_code);
create index releases_required on releases (version_code) where is_required = 1;
