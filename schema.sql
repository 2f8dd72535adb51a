-- The schema of Yarrow's database.
--
-- Once a release contains it, this file does not change: later changes are steps that src/store/migrate.rs lists.
--
-- Times are integer milliseconds since 1970, UTC. The owner of a table is the one module in src/domain whose SQL reads
-- and writes it. Invariants that SQL can hold are constraints; the comments state the others.
--
-- Checks of more than two values compare with `or`: for `in` SQLite builds a temporary tree at every insert.

-- Owner: settings. Run-time settings and internal markers by name.
create table settings (
    name text primary key,
    value text not null,
    updated_at integer not null
) strict, without rowid;

-- Owner: users. Accounts. Ids are never reused (autoincrement), because records elsewhere outlive the account. A user
-- without an address signs in with an identity.
create table users (
    id integer primary key autoincrement,
    phone_number text unique,              -- normalized: national digits in the default region, E.164 elsewhere
    email text unique,                     -- trimmed, in lower case
    nickname text not null default '',
    gender text not null default 'unknown'
        check (gender = 'unknown' or gender = 'male' or gender = 'female' or gender = 'other'),
    birthday text,                         -- yyyy-mm-dd
    signature text not null default '',
    created_at integer not null
) strict;

create index users_by_time on users (created_at, id);
create index users_by_nickname on users (nickname, id) where nickname <> '';
-- Irregular numbers, with anything but digits after an optional plus sign. For validation and repair.
create index users_with_irregular_phone on users (id)
    where ltrim(substr(phone_number, 1, 1), '+0123456789') <> '' or ltrim(substr(phone_number, 2), '0123456789') <> '';

-- Owner: suspensions. Suspensions of users, by the staff or by a rule. At most one of each user and scope is not lifted;
-- it is in force until its end.
create table suspensions (
    id integer primary key autoincrement,
    user_id integer not null references users (id) on delete cascade,
    scope text not null check (scope = 'account' or scope = 'nickname' or scope = 'review'),
    source text not null check (source in ('staff', 'rule')),
    reason text not null,                  -- the user is told
    actor text not null,                   -- as in audit
    created_at integer not null,
    ends_at integer,                       -- null: until it is lifted
    lifted_at integer,                     -- also set once a later one replaces an ended one
    lifted_by text,
    check (ends_at is null or ends_at > created_at)
) strict;

create index suspensions_by_user on suspensions (user_id, id);
create unique index suspensions_not_lifted on suspensions (user_id, scope) where lifted_at is null;

-- Owner: imports. Users who came from a former backend, by the id they had there.
create table imported_users (
    source text not null,                  -- the operator's name of the backend
    external_id text not null,
    user_id integer not null references users (id) on delete cascade,
    primary key (source, external_id)
) strict, without rowid;

create unique index imported_users_by_user on imported_users (user_id, source);

-- Owner: staff_notes. Notes of the staff about users.
create table staff_notes (
    id integer primary key autoincrement,
    user_id integer not null references users (id) on delete cascade,
    author text not null,                  -- as in audit
    content text not null,
    created_at integer not null
) strict;

create index staff_notes_by_user on staff_notes (user_id, id);

-- Owner: identities. Identities at other services with which users sign in.
create table identities (
    provider text not null check (provider = 'apple' or provider = 'google' or provider = 'wechat'),
    subject text not null,                 -- the provider's id of the person
    user_id integer not null references users (id) on delete cascade,
    linked_at integer not null,
    last_used_at integer not null,         -- the last sign-in with it
    primary key (provider, subject)
) strict, without rowid;

create unique index identities_by_user on identities (user_id, provider);

-- Owner: identities. Signed identity tokens that were used, until they expire. Each is good for one sign-in.
create table used_identity_tokens (
    token_sha256 blob primary key,
    expires_at integer not null
) strict, without rowid;

create index used_identity_tokens_by_expiry on used_identity_tokens (expires_at);

-- Owner: codes. Live verification codes: at most one for each address and purpose. Only an HMAC of the code is stored.
create table codes (
    address text not null,                 -- HMAC under the server key
    client_network text not null default '', -- the /24 or /56 that requested it; others may use up few attempts
    purpose text not null check (purpose = 'sign_in' or purpose = 'address' or purpose = 'cancellation'),
    code_hmac blob not null,
    tries_left integer not null check (tries_left >= 0),
    expires_at integer not null,
    primary key (address, purpose)
) strict, without rowid;

-- Owner: codes. Code messages that were sent or may have been sent, for support and the limits of an address.
create table code_sends (
    id integer primary key,
    address text not null,                 -- HMAC under the server key
    client_network text not null,          -- the IPv4 address, or the /64 of the IPv6 address
    sent_at integer not null
) strict;

create index code_sends_by_address on code_sends (address, sent_at);

-- Owner: codes. Counts for the limits over rolling windows, so that neither a restart nor another client address
-- resets them. The count of a window is the difference of two totals.
create table code_counts (
    event text not null check (event = 'sent' or event = 'wrong' or event = 'refused'),
    subject text not null,                 -- a client network, the /24, /56 or /48 around it, or '' for all
    counted_at integer not null,
    total integer not null,                -- events of the subject up to this time
    events integer not null,               -- at this time
    primary key (event, subject, counted_at)
) strict, without rowid;

create index code_counts_by_time on code_counts (counted_at);

-- Owner: codes. Requests for codes with their outcomes, for support. Providers' words are masked.
create table code_messages (
    id integer primary key,
    address text not null,                 -- HMAC under the server key
    channel text not null check (channel in ('sms', 'email')),
    purpose text not null check (purpose = 'sign_in' or purpose = 'address' or purpose = 'cancellation'),
    asked_at integer not null,
    outcome text not null check (outcome = 'asked' or outcome = 'sent' or outcome = 'not_sent' or outcome = 'unknown'
        or outcome = 'refused' or outcome = 'review_account'),
    finished_at integer,
    provider text,
    code text,                             -- the provider's, or this service's for a refusal
    receipt text,                          -- the provider's identifier of the message or the failed call
    words text,
    delivery text check (delivery = 'waiting' or delivery = 'delivered' or delivery = 'failed'),
    delivery_code text,
    delivery_at integer
) strict;

create index code_messages_by_address on code_messages (address, asked_at);

-- Owner: tokens. Sign-in tokens, stored as SHA-256. A family (a device) is one sign-in and the tokens that replaced each
-- other since. At most one token of a family is not replaced. A replaced token works for a short grace period; a later
-- use ends the family.
create table tokens (
    id integer primary key,
    token_sha256 blob not null unique,
    user_id integer not null references users (id) on delete cascade,
    expires_at integer not null,
    replaced_at integer,
    family blob not null,                  -- the SHA-256 of the family's first token
    family_expires_at integer not null,    -- the limit for every token of the family
    created_at integer not null,
    label text not null,                   -- device name that the client sent
    signed_in_at integer not null,         -- when the family began
    last_used_at integer not null          -- to the hour
) strict;

create index tokens_by_user on tokens (user_id);
create index tokens_by_expiry on tokens (expires_at);

-- Owner: tokens. One row with a number that grows when a token, or its user's address, changes in a way that matters to
-- a cached token. Token caches compare it. Inserts and `last_used_at` do not count.
create table token_changes (
    id integer primary key check (id = 0),
    number integer not null
) strict;

create trigger tokens_count_updates after update of token_sha256, user_id, expires_at, replaced_at, family_expires_at
    on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

create trigger tokens_count_deletes after delete on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

create trigger tokens_count_suspensions after insert on suspensions
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

create trigger tokens_count_user_updates after update of phone_number, email, created_at on users
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

-- Owner: words. The local word list of content moderation.
create table words (
    folded text primary key,               -- normalized form, unique among the words
    word text not null,
    type text not null,
    by_sound integer not null check (by_sound in (0, 1)), -- also matched by pronunciation
    severity text not null check (severity = 'low' or severity = 'medium' or severity = 'high'),
    tags text not null,                    -- further types, separated by blanks
    content_types text not null,           -- names separated by blanks; empty for all
    created_at integer not null
) strict, without rowid;

create index words_by_type on words (type, folded);

-- Owner: words. Phrases that are allowed although they contain a listed word.
create table allowed_phrases (
    phrase text primary key,
    created_at integer not null
) strict, without rowid;

-- Owner: words. Changes of both lists, numbered without gaps. The last number is the version of the lists, by which
-- each process notices a change. An import is one row with action `many`. Old rows are purged.
create table word_changes (
    version integer primary key autoincrement,
    at integer not null,
    action text not null check (action = 'added' or action = 'removed' or action = 'many'),
    folded text not null,
    word text,
    type text,
    by_sound integer,
    severity text,
    tags text,
    content_types text
) strict;

-- Owner: violations. Texts of users, and model answers to them, that moderation refused. The text is stored masked.
create table violations (
    id integer primary key autoincrement,  -- figures are counted by ids, which are never reused
    user_id integer not null,
    content_type text not null check (content_type = 'nickname' or content_type = 'signature'
        or content_type = 'question' or content_type = 'answer'),
    violation_type text not null,
    words text not null,                   -- JSON array
    masked_text text not null,
    provider text not null,
    created_at integer not null,
    acquitted_at integer,                  -- a moderator found that the text was wrongly refused
    acquitted_by text                      -- as in audit
) strict;

create index violations_by_time on violations (created_at, id, user_id, content_type);
create index violations_by_user on violations (user_id, created_at);
create index violations_by_type on violations (violation_type, created_at);
create index violations_by_content on violations (content_type, created_at);

-- Owner: moderation. Texts that passed and wait for a moderator, and those decided. The text is stored as written, until a
-- day after the decision.
create table reviews (
    id integer primary key autoincrement,
    user_id integer not null references users (id) on delete cascade,
    content_type text not null check (content_type = 'nickname' or content_type = 'signature'
        or content_type = 'question' or content_type = 'answer'),
    violation_type text not null,
    words text not null,                   -- JSON array
    ways text not null,                    -- JSON array: how the words were found
    excerpt text not null,
    masked_text text not null,
    provider text not null,
    created_at integer not null,
    state text not null check (state = 'waiting' or state = 'upheld' or state = 'acquitted'),
    decided_at integer,
    decided_by text,                       -- as in audit
    violation_id integer                   -- the violation of an upheld one
) strict;

create index reviews_by_state on reviews (state, id);
create index reviews_by_user on reviews (user_id, state);
create index reviews_by_time on reviews (created_at);
create index reviews_by_decision on reviews (decided_at) where decided_at is not null and excerpt <> '';

-- Owner: moderation. Texts on which the local list and the external moderator disagreed, masked. Only the newest are
-- stored, and none of a deleted user.
create table disagreements (
    id integer primary key autoincrement,
    content_type text not null check (content_type = 'nickname' or content_type = 'signature'
        or content_type = 'question' or content_type = 'answer'),
    decided_by text not null,              -- local or external
    local_allowed integer not null check (local_allowed in (0, 1)),
    external_allowed integer not null check (external_allowed in (0, 1)),
    words text not null,                   -- JSON array: words that the local list found
    labels text not null,                  -- JSON array: labels of the external moderator
    masked_text text not null,
    created_at integer not null,
    user_id integer,                       -- author; null for an administrator's text
    check (local_allowed <> external_allowed)
) strict;

create index disagreements_by_user on disagreements (user_id, id);
create index disagreements_by_time on disagreements (created_at);

-- Owner: history. History records: castings that clients of the first API generation store under record ids of their own. `sequence`
-- numbers a user's records from 1 in the order of arrival. The single writer thread keeps it unique. A deleted record has a
-- negative one until a job deletes the row.
create table history (
    id integer primary key,                -- rows of this size in the unique key would make a deep tree
    user_id integer not null,
    sequence integer not null,
    local_record_id text not null,
    bytes integer not null default 0,      -- of the id and the texts; before them, so that reading it reads none
    question_type text,
    question text,
    json_data text,                        -- JSON exactly as received
    ai_result text,
    client_timestamp text,                 -- JSON exactly as received; never used to order or limit
    created_at integer not null,
    updated_at integer not null,
    change integer not null default 0,     -- number of the last change, see deletions
    -- Many clients derive record ids from the time, so this order inserts at the end of the index.
    unique (local_record_id, user_id)
) strict;

-- Contains every column that a count or a sum of bytes needs, so that they read no records.
create index history_by_user on history (user_id, sequence, question_type, bytes);
create index history_by_change on history (user_id, change);
create index history_deleted on history (sequence, user_id, updated_at) where sequence < 0;

-- Owner: history. The numbers and bytes of the records of users who have many. Compared by `yarrow doctor`.
create table history_sums (
    user_id integer not null,
    visible integer not null,
    hidden integer not null,               -- without those that exceed the limit and are being deleted
    bytes integer not null,                -- of visible and hidden records
    primary key (user_id)
) strict;

-- Owner: history. The times at which users hid all their records. A record is hidden if its sequence is up to one of
-- `through`, since the first such time; it is purged some weeks later. A restoration lowers `through`.
create table history_hidings (
    id integer primary key,
    user_id integer not null,
    hidden_at integer not null,
    through integer not null,              -- sequence of the last hidden record; 0 once none is left
    surplus_through integer not null       -- records up to this one exceed the limit and are being deleted; 0 for none
) strict;

create index history_hidings_by_user on history_hidings (user_id, hidden_at, through, surplus_through);
create index history_hidings_by_time on history_hidings (hidden_at) where through > 0;
create index history_hidings_done on history_hidings (hidden_at) where through = 0;
create index history_hidings_surplus on history_hidings (surplus_through) where surplus_through > 0;

-- Owner: history. The times at which users restored hidden records. The number of the last change of a record up to
-- `through` is at least `base` and its sequence; those of the newest restoration are the highest.
create table history_restorings (
    id integer primary key,
    user_id integer not null,
    restored_at integer not null,
    through integer not null,
    base integer not null
) strict;

create index history_restorings_by_user on history_restorings (user_id, restored_at, through, base);

-- Owner: interpretation. One row for each model call, written before the call and completed after it.
create table interpretations (
    id integer primary key,
    trace_id text not null unique,         -- 32 hexadecimal digits, W3C Trace Context
    user_id integer not null,
    question_type text,
    question text not null,                -- empty without one, and once the user's data were erased
    divination_data text,                  -- JSON exactly as received
    status text not null check (status = 'running' or status = 'succeeded' or status = 'failed' or status = 'cancelled'
        or status = 'interrupted'),
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
    cost_micros integer,                   -- by the price list, in millionths of the currency
    failover text,                         -- error class of the first model if the second was called
    finish_reason text check (finish_reason in ('stop', 'length')), -- null unless succeeded
    of_session integer not null default 0 check (of_session in (0, 1)), -- deleted with its session, not by age
    is_helpful integer check (is_helpful in (0, 1)), -- the user's rating, if any
    rating_note text,                      -- the user's words about the rating
    rated_at integer,
    check ((status = 'running') = (finished_at is null)),
    check ((rated_at is null) = (is_helpful is null))
) strict;

create index interpretations_by_user on interpretations (user_id, created_at, id);
create index interpretations_large on interpretations (user_id, created_at, id) where length(divination_data) > 4000;
create index interpretations_by_time on interpretations (created_at);
create index interpretations_by_duration on interpretations (duration_ms, id);
create index interpretations_failed on interpretations (id) where status in ('failed', 'interrupted');
create index interpretations_rated on interpretations (rated_at, provider, model, prompt_version, is_helpful)
    where rated_at is not null;
create index interpretations_noted on interpretations (rated_at, id) where rating_note is not null;

-- Owner: chat. One row for each chat turn, written before the call and completed after it. Messages are not stored.
create table chats (
    id integer primary key,
    trace_id text not null unique,
    user_id integer not null,
    messages integer not null,             -- number of messages in the request
    status text not null check (status = 'running' or status = 'succeeded' or status = 'failed' or status = 'cancelled'
        or status = 'interrupted'),
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

-- Owner: model_calls. Start times of model calls, for the hourly limit. They outlive the records of the calls, which go
-- with a deleted session.
create table model_calls (
    id integer primary key,
    user_id integer not null,
    kind text not null check (kind in ('interpretation', 'chat')),
    created_at integer not null
) strict;

create index model_calls_by_user on model_calls (user_id, kind, created_at);
create index model_calls_by_time on model_calls (created_at);

-- Owner: model_calls. Model calls that run, with what each has reserved of the budgets of its day.
create table running_calls (
    trace_id text primary key,
    copy text not null,                    -- the copy of the service that makes it; empty with a file
    user_id integer,                       -- null once the account was deleted
    kind text not null check (kind in ('interpretation', 'chat')),
    provider text not null,
    model text not null,
    day text not null,
    reserved_tokens integer not null,
    reserved_cost_micros integer not null
) strict, without rowid;

create index running_calls_by_copy on running_calls (copy);
create index running_calls_by_user on running_calls (user_id);

-- Owner: budget. Usage of model calls by day and outcome. Outlives the records of the calls.
create table model_usage (
    day text not null,                     -- yyyy-mm-dd in the time zone of the service
    kind text not null check (kind = 'interpretation' or kind = 'chat' or kind = 'test'),
    provider text not null,
    model text not null,                   -- the requested model
    outcome text not null,
    calls integer not null,
    slow_calls integer not null,           -- those of ten seconds or more
    prompt_tokens integer not null,
    completion_tokens integer not null,
    cost_micros integer not null,
    duration_ms integer not null,
    primary key (day, kind, provider, model, outcome)
) strict, without rowid;

-- Owner: budget. Spending against the daily budgets: one row for each user and day, and one a day for all (user 0).
-- Running calls reserve their maximum until they are settled.
create table model_spending (
    day text not null,
    user_id integer not null,
    tokens integer not null,
    cost_micros integer not null,
    reserved_tokens integer not null check (reserved_tokens >= 0),
    reserved_cost_micros integer not null check (reserved_cost_micros >= 0),
    primary key (day, user_id)
) strict, without rowid;

-- Owner: sessions. Castings of the current API. `sequence` numbers a user's sessions from 1 in the order of creation.
-- They become snapshots when their user is deleted.
create table sessions (
    id text primary key,                   -- 32 random hexadecimal digits
    user_id integer not null,
    sequence integer not null,
    question text not null,
    question_type text,
    method text not null check (method = 'three_coins' or method = 'yarrow_stalks' or method = 'manual' or method = 'time'
        or method = 'numbers'),
    numbers text,                          -- of the method 'numbers': one to three, with commas between them
    lines text not null check (length(lines) = 6 and lines not glob '*[^6-9]*'), -- bottom up
    cast_at integer not null,              -- the client's time; never used to order or limit
    time_zone text not null,
    day_start text not null check (day_start in ('23:00', '00:00')), -- the user's day rule at the casting
    points_spent integer not null check (points_spent >= 0),
    idempotency_key text,                  -- of the request that created it
    created_at integer not null,
    trace_id text,                         -- this and the next three: the newest successful interpretation
    model text,
    duration_ms integer,
    interpreted_at integer,
    title text,                            -- the user's own, like the note
    note text,
    change integer not null default 0,     -- number of the last change, see deletions
    check ((numbers is null) = (method <> 'numbers')),
    unique (user_id, sequence),
    check ((trace_id is null) = (interpreted_at is null))
) strict;

create index sessions_by_change on sessions (user_id, change);

-- Owner: sessions. Question, title and note of each session once more, in the spelling that a search compares. The texts
-- of a user lie next to each other, so that a search reads few pages.
create table session_texts (
    user_id integer not null,
    sequence integer not null,
    text text not null,
    primary key (user_id, sequence),
    foreign key (user_id, sequence) references sessions (user_id, sequence) on delete cascade
) strict, without rowid;

-- Owner: sessions. Model calls that belong to a session. Their records are deleted with it.
create table session_calls (
    trace_id text primary key,
    session_id text not null references sessions (id) on delete cascade,
    points_spent integer not null default 0 check (points_spent >= 0) -- 0 again once they were refunded
) strict, without rowid;

create index session_calls_by_session on session_calls (session_id);

-- Owner: sessions. Anonymous statistics of deleted sessions. No value links a row to another table, and neither the
-- random key nor the position of a row reveals its time or user.
create table session_snapshots (
    id blob primary key,
    question_type text,                    -- a common type, or 'other'
    method text not null check (method = 'three_coins' or method = 'yarrow_stalks' or method = 'manual'
        or method = 'time' or method = 'numbers'),
    lines text not null,
    primary_hexagram integer not null check (primary_hexagram between 1 and 64),
    relating_hexagram integer check (relating_hexagram between 1 and 64),
    nuclear_hexagram integer not null check (nuclear_hexagram between 1 and 64),
    day text not null,                     -- date of the casting
    is_interpreted integer not null check (is_interpreted in (0, 1)),
    interpretation_tenths integer,         -- duration in tenths of a second
    model text,
    points_spent integer not null
) strict, without rowid;

-- Owner: invites. Invite codes of users, created on the first request.
create table invite_codes (
    user_id integer primary key references users (id) on delete cascade,
    code text not null unique,
    invited integer not null default 0,    -- users who redeemed it
    rewarded integer not null default 0,   -- redemptions that earned the owner points
    created_at integer not null
) strict;

-- Owner: invites. Redeemed codes: invitee and inviter, as long as both accounts exist.
create table invites (
    invitee_id integer primary key references users (id) on delete cascade,
    inviter_id integer,
    created_at integer not null
) strict;

create index invites_by_inviter on invites (inviter_id);

-- Owner: invites. Invite history of addresses, kept for ever, so that a recreated account starts where the old one
-- stood. Only an HMAC of the address is stored.
create table invite_addresses (
    address_hmac blob primary key,
    has_redeemed integer not null check (has_redeemed in (0, 1)),
    rewarded integer not null check (rewarded >= 0)
) strict, without rowid;

-- Owner: account_erasures. Deleted users of whose data some rows are left. Nobody sees these rows, and a job deletes
-- them in small steps.
create table account_erasures (
    user_id integer primary key,
    requested_at integer not null
) strict;

-- Owner: network_log. Deleted users whose entries are to be erased from the network log, which is another file.
create table access_log_erasures (
    user_id integer primary key,
    requested_at integer not null
) strict;

-- Owner: ledger. Balances of accounts. A balance is a cache: it equals the sum of the account's entries and the last
-- entry's `balance_after`. No foreign key, because the account outlives its user. Balances stay below 2^53, so that
-- clients with floating-point numbers read them exactly.
create table balances (
    user_id integer not null,
    asset text not null check (asset in ('coin', 'point')),
    balance integer not null check (balance between 0 and 9007199254740991),
    last_sequence integer not null check (last_sequence >= 0),
    suspended_at integer,                  -- disagrees with its entries: no postings until repaired
    seal blob,                             -- HMAC of the row under the server key
    primary key (user_id, asset)
) strict, without rowid;

create index balances_suspended on balances (suspended_at) where suspended_at is not null;

-- Owner: ledger. Ledger entries, kept for ever. `seq` numbers all entries and `sequence` those of an account, both from
-- 1 and without gaps. (asset, kind, ref) makes each business event count once. `ref` names the event without a foreign
-- key, so that the entry outlives it. Entries without a separate event have none and stay out of that index.
create table ledger_entries (
    seq integer primary key,
    user_id integer not null,
    asset text not null check (asset in ('coin', 'point')),
    sequence integer not null check (sequence > 0),
    delta integer not null check (delta <> 0),
    balance_after integer not null check (balance_after >= 0),
    kind text not null check (kind = 'consume' or kind = 'cast' or kind = 'topup' or kind = 'reset' or kind = 'adjust'
        or kind = 'signup_bonus' or kind = 'invite_bonus' or kind = 'invitee_bonus' or kind = 'parked'
        or kind = 'restored' or kind = 'refund' or kind = 'interpretation' or kind = 'interpretation_refund'
        or kind = 'purchase_bonus' or kind = 'purchase_bonus_refund' or kind = 'exchange'
        or kind = 'refund_reversal' or kind = 'test_purchase' or kind = 'import'),
    ref text,
    created_at integer not null,
    seal blob,                             -- HMAC of the row under the server key
    unique (user_id, asset, sequence)
) strict;

create unique index ledger_entries_by_event on ledger_entries (asset, kind, ref) where ref is not null;
create index ledger_entries_topups on ledger_entries (user_id) where kind = 'topup';

-- Seals are renewed when an operator accepts another server key.
create trigger ledger_entries_forbids_update
before update of seq, user_id, asset, sequence, delta, balance_after, kind, ref, created_at on ledger_entries
begin
    select raise(abort, 'ledger entries cannot be changed');
end;

create trigger ledger_entries_forbids_delete before delete on ledger_entries
begin
    select raise(abort, 'ledger entries cannot be deleted');
end;

-- Owner: ledger. Manual changes and repairs of accounts, chained: `hash` is the HMAC of the row and of the previous
-- row's hash under the server key.
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
create index ledger_audit_by_actor on ledger_audit (actor, created_at);

create trigger ledger_audit_forbids_update
before update of id, actor, action, user_id, asset, reason, balance_before, balance_after, request_id, created_at
on ledger_audit
begin
    select raise(abort, 'ledger audit rows cannot be changed');
end;

create trigger ledger_audit_forbids_delete before delete on ledger_audit
begin
    select raise(abort, 'ledger audit rows cannot be deleted');
end;

-- Owner: email_rewards. HMACs of email addresses that have had the sign-up bonus, and of their mailboxes, kept for ever. For a time also the
-- points that a deleted account had; `parking` is their reference in the ledger.
create table email_rewards (
    email_hmac blob primary key,
    created_at integer not null,
    parked_points integer check (parked_points > 0),
    parked_bonus integer not null default 0 check (parked_bonus >= 0), -- the part that was a sign-up bonus
    parking text,
    parked_at integer,
    check ((parked_points is null) = (parked_at is null) and (parked_points is null) = (parking is null))
) strict, without rowid;

create index email_rewards_parked on email_rewards (parked_at) where parked_at is not null;

-- Owner: deletions. Deleted sessions, history records and notifications of a user, until retention.deletions ends, so that
-- the user's devices delete them too. Change numbers are milliseconds since 1970, or one more than the last number of
-- the user's rows of the kind, so that they grow even if the clock does not.
create table deletions (
    user_id integer not null,
    number integer not null,
    kind text not null check (kind = 'session' or kind = 'history' or kind = 'notification'),
    subject text not null,                 -- the id of what was deleted; empty for a range
    deleted_at integer not null,
    range_after integer,                   -- a range of history records that were hidden, by their sequences. Each has a number
    range_through integer,                 -- of its own, up to that of the row, in the order of the sequences
    check ((range_after is null) = (range_through is null)),
    primary key (user_id, number)
) strict, without rowid;

create index deletions_by_time on deletions (deleted_at);
create index deletions_of_ranges on deletions (user_id, range_through) where range_through is not null;

-- Owner: idempotency. First responses to requests with an Idempotency-Key, stored in the transaction of their effect.
-- Ids grow with time, so the oldest rows are found without another index.
create table idempotency_keys (
    id integer primary key,
    caller text not null,                  -- user:…, admin:…, key:…
    route text not null,                   -- path of the endpoint; only POST requests have keys
    key text not null,
    request_sha256 blob not null,
    status integer not null,
    body blob not null,                    -- empty once its subject was deleted
    created_at integer not null,
    is_free integer not null default 0 check (is_free in (0, 1)) -- the request changed nothing, such as a refused one
) strict;

-- Not unique, because it lacks the route; the single writer thread keeps keys unique.
create index idempotency_keys_by_key on idempotency_keys (key, caller);
create index idempotency_keys_free on idempotency_keys (caller, id) where is_free = 1;

-- Owner: admins. Administrators.
create table admins (
    id integer primary key autoincrement,
    name text not null unique,
    password_hash text not null,           -- Argon2id, PHC format
    role text not null check (role = 'read-only' or role = 'support' or role = 'moderator' or role = 'owner'),
    created_at integer not null
) strict;

-- Owner: admins. Administrator sessions, stored as SHA-256.
create table admin_tokens (
    token_sha256 blob primary key,
    admin_id integer not null references admins (id) on delete cascade,
    expires_at integer not null,
    last_used_at integer not null,
    created_at integer not null,
    proved_at integer not null,            -- last proof of identity, or last sensitive act that it covered
    proof_began_at integer not null        -- last proof of identity
) strict, without rowid;

create index admin_tokens_by_admin on admin_tokens (admin_id);
create index admin_tokens_by_expiry on admin_tokens (expires_at);

-- Owner: admins. Authenticator secrets of administrators, sealed under the server key. A factor is active once
-- confirmed.
create table admin_second_factors (
    admin_id integer primary key references admins (id) on delete cascade,
    sealed_secret blob not null,
    confirmed_at integer,
    created_at integer not null
) strict;

-- Owner: admins. Used second-factor codes by their time step of 30 seconds since 1970. A code counts once.
create table admin_used_codes (
    admin_id integer not null references admin_second_factors (admin_id) on delete cascade,
    step integer not null,
    primary key (admin_id, step)
) strict, without rowid;

-- Owner: admins. API keys, stored as SHA-256. A suspended key can be resumed; a revoked key keeps its label reserved.
create table api_keys (
    id integer primary key autoincrement,
    label text not null unique,
    key_sha256 blob not null unique,
    role text not null check (role = 'read-only' or role = 'support' or role = 'moderator' or role = 'owner'),
    created_at integer not null,
    expires_at integer,                    -- null: never
    last_used_at integer,
    suspended_at integer,
    revoked_at integer
) strict;

-- Owner: admins. Failed and running sign-in attempts of administrators, which the attempt limits count.
create table admin_attempts (
    id integer primary key,
    name text not null,
    client_network text not null,          -- as in code_sends
    wide_network text not null,
    widest_network text,
    tried_at integer not null
) strict;

create index admin_attempts_by_name on admin_attempts (name, tried_at);
create index admin_attempts_by_client on admin_attempts (client_network, tried_at);
create index admin_attempts_by_wide_network on admin_attempts (wide_network, tried_at);
create index admin_attempts_by_widest_network on admin_attempts (widest_network, tried_at)
    where widest_network is not null;
create index admin_attempts_by_time on admin_attempts (tried_at);

-- Owner: audit. Audit events: one row for each read or change by an administrator. Append-only.
create table audit (
    id integer primary key,
    at integer not null,
    actor text not null,                   -- admin:NAME, key:LABEL, cli, unknown
    action text not null,                  -- method and route template, or the command
    user_id integer,                       -- the user concerned, if any
    reason text,
    outcome integer not null,              -- HTTP status of the response; 200 for a completed command
    client_ip text,
    request_id text not null,
    system_user text,                      -- who ran the command
    seal blob                              -- HMAC of the row under the server key
) strict;

create index audit_by_user on audit (user_id, id) where user_id is not null;
create index audit_by_actor on audit (actor, id);
create index audit_by_time on audit (at);

create trigger audit_forbids_update
before update of id, at, actor, action, user_id, reason, outcome, client_ip, request_id on audit
begin
    select raise(abort, 'audit rows cannot be changed');
end;

create trigger audit_forbids_delete before delete on audit
begin
    select raise(abort, 'audit rows cannot be deleted');
end;

-- Owner: figures. Daily sums for charts. They name no user.
create table figures (
    name text not null,
    day text not null,                     -- yyyy-mm-dd in the time zone of the service
    key text not null,                     -- part of the figure, such as the kind of a ledger entry; may be empty
    value integer not null,
    primary key (name, day, key)
) strict, without rowid;

-- Owner: figures. The number of the last counted row of each source, moved in the transaction that counts the row.
create table figure_marks (
    source text primary key,
    through integer not null
) strict, without rowid;

-- Owner: active_users. The users who were active on a day: a bit for each of 4,096 ids, the lowest bit first. Cleared with
-- the account and kept as long as the network log, from which it comes.
create table active_users (
    block integer not null,                -- ids from block * 4096
    day text not null,                     -- yyyy-mm-dd in the time zone of the service
    bits blob not null,
    primary key (block, day)
) strict, without rowid;

create index active_users_by_day on active_users (day);

-- Owner: request_tallies. Requests of an hour, kept for 400 days.
create table request_hours (
    hour integer primary key,              -- counted from 1970
    requests integer not null,
    errors integer not null,
    buckets blob not null                  -- requests by duration: 64-bit numbers, the lowest byte first
) strict;

-- Owner: confirmations. Tokens that confirm an irreversible action, stored as SHA-256.
create table confirmations (
    token_sha256 blob primary key,
    actor text not null,
    action text not null,
    expires_at integer not null
) strict, without rowid;

create index confirmations_by_expiry on confirmations (expires_at);

-- Owner: products. Products that an operator defined, or changed from the settings. A withdrawn product stays, because a
-- late purchase must still find what it brings.
create table products (
    id text primary key,
    version integer not null check (version > 0), -- of its current terms
    is_for_sale integer not null check (is_for_sale in (0, 1))
) strict, without rowid;

-- Owner: products. The terms of each version of a product, kept for ever.
create table product_versions (
    product_id text not null references products (id),
    version integer not null check (version > 0),
    asset text not null check (asset in ('coin', 'point')),
    quantity integer not null check (quantity > 0),
    bonus integer not null check (bonus >= 0),             -- given with each purchase
    first_bonus integer not null check (first_bonus >= 0), -- given with a user's first purchase too
    amount_fen integer check (amount_fen > 0),             -- price at gateways; null for products of app stores only
    apple_id text,
    google_id text,
    subject_zh text,
    subject_en text,
    description_zh text,
    description_en text,
    created_at integer not null,
    primary key (product_id, version)
) strict, without rowid;

create index product_versions_by_apple_id on product_versions (apple_id, created_at) where apple_id is not null;
create index product_versions_by_google_id on product_versions (google_id, created_at) where google_id is not null;

-- Owner: payments. Orders. An order stores its own terms, so that a change of the product changes no order, and has no
-- foreign key, so that it stays payable when its user is gone. States move forward only (created, paid, credited,
-- refunded; created, closed; closed, paid), except `review`, from which an administrator releases an order.
create table payment_orders (
    id integer primary key,
    order_no text not null unique,
    user_id integer not null,
    channel text not null,                 -- payment gateway of the order
    amount_fen integer not null check (amount_fen > 0),
    product_id text not null,              -- with the terms of this version, copied into the order
    product_version integer not null,
    asset text not null check (asset in ('coin', 'point')),
    coin_count integer not null check (coin_count > 0), -- coins or points, without bonus
    bonus integer not null check (bonus >= 0),
    first_bonus integer not null check (first_bonus >= 0),
    subject text not null,                 -- what the buyer sees at the provider
    state text not null check (state = 'created' or state = 'paid' or state = 'credited' or state = 'closed'
        or state = 'refunded' or state = 'review'),
    reason text,                           -- reason for the review, or how it was settled
    trade_no text,                         -- the provider's trade number, once paid
    refunded_fen integer not null default 0 check (refunded_fen >= 0),
    coins_returned integer not null default 0 check (coins_returned >= 0),
    coins_written_off integer not null default 0 check (coins_written_off >= 0),
    bonus_credited integer not null default 0 check (bonus_credited >= 0),
    bonus_returned integer not null default 0 check (bonus_returned >= 0),
    bonus_written_off integer not null default 0 check (bonus_written_off >= 0),
    returns integer not null default 0,    -- number of postings that took coins back or gave them back
    checks integer not null default 0,     -- scheduled queries to the provider so far
    next_check_at integer,                 -- next scheduled query; null once nothing is open
    asked_at integer,                      -- last query that the user requested
    created_at integer not null,
    expires_at integer not null,           -- expiry of the order string
    paid_at integer,
    credited_at integer,
    closed_at integer,
    refunded_at integer,
    app_id text,                           -- the provider's app of the order
    provider_ref text,                     -- the provider's name of the order before it is paid; Stripe: the session
    currency text not null default 'CNY',  -- amounts are hundredths of it, in spite of their columns' names
    payer text not null default '',        -- fingerprint of the client for which WeChat prepared it
    paid_fen integer not null default 0 check (paid_fen >= 0), -- received, which may differ from the price
    settled_at integer,                    -- last decision of an administrator
    check (coins_returned + coins_written_off <= coin_count),
    check (bonus_returned + bonus_written_off <= bonus_credited),
    check (state <> 'review' or reason is not null)
) strict;

create index payment_orders_by_user on payment_orders (user_id, id);
create index payment_orders_by_state on payment_orders (state, id);
create index payment_orders_by_time on payment_orders (created_at, id, amount_fen, state);
create index payment_orders_by_state_and_time on payment_orders (state, created_at, id);
create index payment_orders_by_amount on payment_orders (amount_fen, created_at, id, state);
create index payment_orders_due on payment_orders (channel, next_check_at) where next_check_at is not null;
create index payment_orders_open on payment_orders (user_id, product_id, created_at) where state = 'created';
create index payment_orders_refunded on payment_orders (refunded_at, channel, currency, asset, refunded_fen)
    where refunded_at is not null;
create index payment_orders_by_payment on payment_orders (channel, paid_at) where paid_at is not null;
create unique index payment_orders_by_trade on payment_orders (channel, trade_no) where trade_no is not null;

-- Owner: payments. Payment callbacks as received, with their verdict. Unsigned callbacks are kept up to a limit.
create table payment_callbacks (
    id integer primary key,
    received_at integer not null,
    channel text not null,
    is_genuine integer not null check (is_genuine in (0, 1)),
    verdict text not null check (verdict = 'credited' or verdict = 'paid' or verdict = 'closed' or verdict = 'refunded'
        or verdict = 'unchanged' or verdict = 'review' or verdict = 'rejected' or verdict = 'failed'),
    reason text,
    order_no text,                         -- a claim unless the callback is genuine
    trade_no text,
    notify_id text,
    replay_of integer,                     -- id of the callback that was replayed
    form blob not null,                    -- the request body as received
    headers text                           -- JSON of the headers that are signed; null if none are
) strict;

create index payment_callbacks_by_order on payment_callbacks (order_no, id) where order_no is not null;
create index payment_callbacks_by_verdict on payment_callbacks (verdict, id);
create index payment_callbacks_refused on payment_callbacks (id) where is_genuine = 0;

-- Owner: payments. Refunds. The refund number makes a repeated request safe, here and at the provider.
create table payment_refunds (
    refund_no text primary key,
    order_no text not null,
    amount_fen integer not null check (amount_fen > 0),
    state text not null check (state = 'requested' or state = 'succeeded' or state = 'refused' or state = 'processing'
        or state = 'abnormal'),
    reason text not null,
    actor text not null,                   -- as in audit; `provider` for one made at the provider's console
    failure text,                          -- the provider's last error code, or an administrator's note
    asked_at integer not null,             -- last request or query to the provider
    created_at integer not null,
    finished_at integer,
    told_at integer,                       -- when the success was first reported to a caller
    check ((state = 'succeeded' or state = 'refused') = (finished_at is not null))
) strict, without rowid;

create index payment_refunds_by_order on payment_refunds (order_no, created_at);
create index payment_refunds_by_time on payment_refunds (created_at);
create index payment_refunds_open on payment_refunds (asked_at) where finished_at is null;

-- Owner: payments. Disputes of payments, by the provider's numbers. Their reports may precede that of the payment.
create table payment_disputes (
    channel text not null,
    trade_no text not null,
    dispute_no text not null,
    state text not null check (state = 'open' or state = 'won' or state = 'lost'),
    reported_at integer not null,
    primary key (channel, trade_no, dispute_no)
) strict, without rowid;

-- Owner: payments. Checked bills: the last comparison of a provider's bill of a day with our records.
create table payment_bills (
    channel text not null,
    day text not null,                     -- yyyy-mm-dd in Shanghai
    checked_at integer not null,
    payments integer not null,             -- payments on the bill, and their sum
    refunds integer not null,
    paid_fen integer not null,
    refunded_fen integer not null,
    fees text not null,                    -- the provider's fees in yuan, less those given back
    differences integer not null check (differences >= 0),
    found text not null,                   -- JSON: the differences
    primary key (channel, day)
) strict, without rowid;

create index payment_bills_by_day on payment_bills (day, channel);
create index payment_bills_by_time on payment_bills (checked_at);

-- Owner: payments. Platform certificates of WeChat Pay, which verify its messages.
create table wechat_certificates (
    serial text primary key,               -- upper-case hexadecimal digits
    pem text not null,
    expires_at integer not null
) strict, without rowid;

-- Owner: payments. Trades of the sandbox gateway: the simulated provider's own records.
create table sandbox_trades (
    order_no text primary key,
    version integer not null,
    trade text not null                    -- JSON
) strict, without rowid;

-- Owner: purchases. Purchases in app stores, each once by the store's id. A purchase copies the terms of its product, and
-- has no foreign key, so that a late refund still finds it when its user is gone. A refund may be known before the
-- purchase; such a row is `revoked` without a user, and is never credited.
create table store_purchases (
    id integer primary key,
    store text not null check (store in ('apple', 'google')),
    environment text not null check (environment in ('production', 'sandbox')), -- purchases in the sandbox cost nothing
    purchase_id text not null,             -- Apple's transaction id; Google's purchase token
    reference text not null unique,        -- names the purchase in the ledger
    order_id text,                         -- Google's order number
    user_id integer,
    store_product_id text,                 -- null if only a refund is known
    quantity integer not null check (quantity > 0), -- how many of the product
    product_id text,                       -- with the terms of this version; null until it is credited
    product_version integer,
    asset text check (asset in ('coin', 'point')),
    coin_count integer not null default 0 check (coin_count >= 0), -- coins or points of the quantity, without bonus
    bonus integer not null default 0 check (bonus >= 0),
    state text not null check (state = 'pending' or state = 'credited' or state = 'revoked' or state = 'refused'),
    reason text,                           -- why it is refused
    country text,
    price_milli integer,                   -- of the quantity, in thousandths of the currency, if the store says it
    currency text,
    revoked_part integer not null default 0 check (revoked_part between 0 and revoked_whole),
    revoked_whole integer not null default 1 check (revoked_whole > 0),
    restored_at integer,                   -- the store's time of the last reversed refund
    returned integer not null default 0 check (returned >= 0), -- coins taken back
    bonus_returned integer not null default 0 check (bonus_returned >= 0),
    written_off integer not null default 0 check (written_off >= 0), -- coins that were spent before the refund
    bonus_written_off integer not null default 0 check (bonus_written_off >= 0),
    returns integer not null default 0,    -- number of postings that took coins back or gave them back
    due_at integer,                        -- next attempt of the call that the store waits for; null once nothing is open
    due_until integer,                     -- end of the time for that call; null if it has none
    purchased_at integer,
    created_at integer not null,
    credited_at integer,
    revoked_at integer,
    check (returned + written_off <= coin_count),
    check (bonus_returned + bonus_written_off <= bonus),
    check ((credited_at is null) = (product_id is null))
) strict;

create unique index store_purchases_by_id on store_purchases (store, environment, purchase_id);
create unique index store_purchases_by_order on store_purchases (store, order_id) where order_id is not null;
create index store_purchases_by_user on store_purchases (user_id, id);
create index store_purchases_by_state on store_purchases (state, id);
create index store_purchases_by_time on store_purchases (created_at, id);
create index store_purchases_revoked on store_purchases (revoked_at) where revoked_at is not null;
create index store_purchases_due on store_purchases (due_at) where due_at is not null;

-- Owner: purchases. The account tokens that apps pass to the stores: random UUIDs, which say nothing about the user.
create table store_accounts (
    user_id integer primary key references users (id) on delete cascade,
    account_token text not null unique,
    shares_consumption integer not null default 0 check (shares_consumption in (0, 1)) -- the user agreed to send it
) strict;

-- Owner: purchases. Notifications of the stores, so that each acts once. Kept for 30 days.
create table store_messages (
    store text not null,
    message_id text not null,
    kind text not null,
    verdict text not null,
    purchase integer,                      -- id in store_purchases
    received_at integer not null,
    primary key (store, message_id)
) strict, without rowid;

create index store_messages_by_time on store_messages (received_at);
create index store_messages_by_purchase on store_messages (purchase, received_at) where purchase is not null;

-- Owner: preferences. Notification preferences. Without a row the defaults apply. System notices stay enabled.
create table preferences (
    user_id integer primary key references users (id) on delete cascade,
    account integer not null check (account in (0, 1)),
    activity integer not null check (activity in (0, 1)),
    promotion integer not null check (promotion in (0, 1)),
    locale text check (locale in ('zh', 'en')),
    time_zone text,
    day_start text not null check (day_start in ('23:00', '00:00')),
    quiet_hours text,                      -- no pushes in these hours: 22:00-08:00
    script text check (script in ('simplified', 'traditional')),
    updated_at integer not null
) strict;

-- Owner: notifications. Notifications, stored once whatever the number of recipients. Broadcasts are also numbered from
-- 1 by `ordinal`, which is never reused; ids and ordinals grow together.
create table notifications (
    id integer primary key autoincrement,
    ordinal integer unique,                -- of a broadcast; null for single recipients
    kind text not null check (kind = 'system' or kind = 'account' or kind = 'activity' or kind = 'promotion'),
    title text not null,
    body text not null,
    payload text not null,                 -- JSON
    created_at integer not null,
    expires_at integer,
    is_live integer not null default 1 check (is_live in (0, 1)) -- 0 once a job has expired it
) strict;

create index notifications_broadcast on notifications (id, ordinal) where ordinal is not null;
create index notifications_broadcast_by_time on notifications (created_at, ordinal) where ordinal is not null;
create index notifications_expiring on notifications (is_live, expires_at) where expires_at is not null;

-- Owner: notifications. State and kind of up to 512 broadcasts, those from ordinal 512 × block + 1 on. A deleted or
-- expired broadcast keeps its byte, as 0.
create table notification_blocks (
    block integer primary key,
    kinds blob not null                    -- one byte each: 0 gone, 1 system, 2 account, 3 activity, 4 promotion
) strict;

-- Owner: notifications. Number of readers of each broadcast of a block.
create table notification_readers (
    block integer primary key,
    counts blob not null                   -- four bytes each, big-endian
) strict;

-- Owner: notifications. Recipients of notifications that are not broadcasts. The number for each user is limited.
create table notification_recipients (
    user_id integer not null references users (id) on delete cascade,
    notification_id integer not null references notifications (id) on delete cascade,
    kind text not null,                    -- the notification's
    expires_at integer,                    -- the notification's
    is_read integer not null default 0 check (is_read in (0, 1)), -- read one by one; a mark reads others
    primary key (user_id, notification_id)
) strict, without rowid;

create index notification_recipients_by_notification on notification_recipients (notification_id);
create index notification_recipients_unread on notification_recipients (user_id, notification_id, kind, expires_at) where is_read = 0;

-- Owner: notifications. Broadcasts that the staff deleted, for the apps that show them. Purged like deletions.
create table notification_deletions (
    number integer primary key autoincrement,
    notification_id integer not null,
    deleted_at integer not null
) strict;

create index notification_deletions_by_time on notification_deletions (deleted_at);
create index notification_deletions_by_notification on notification_deletions (notification_id);

-- Owner: notifications. Notifications that users read one by one, with the first read time.
create table notification_reads (
    user_id integer not null,
    notification_id integer not null,
    read_at integer not null,
    change integer not null default 0,     -- number of the change, see deletions
    primary key (user_id, notification_id)
) strict, without rowid;

create index notification_reads_by_change on notification_reads (user_id, change);

-- Owner: notifications. Broadcasts that users read one by one, for counting: one bit for each broadcast of a block.
-- A later mark clears the bits that it covers.
create table notification_read_blocks (
    user_id integer not null references users (id) on delete cascade,
    block integer not null,
    bits blob not null,
    primary key (user_id, block)
) strict, without rowid;

-- Owner: notifications. "Mark all as read" requests that changed something: everything up to an id is read since then.
create table notification_marks (
    user_id integer not null,
    through integer not null,              -- a notification's id
    ordinal integer not null,              -- of the newest broadcast at that time
    marked_at integer not null,
    primary key (user_id, through)
) strict, without rowid;

-- Owner: push_queue. Apps on phones that get pushes. A token belongs to the user who registered it last.
create table push_devices (
    id integer primary key autoincrement,
    user_id integer not null references users (id) on delete cascade,
    family blob not null,                  -- the sign-in that registered it, as in tokens
    service text not null check (service = 'apns' or service = 'fcm' or service = 'http'),
    token text not null,
    created_at integer not null,
    updated_at integer not null,           -- the last registration
    refused_at integer,                    -- the first refusal of the token since a push was accepted
    unique (service, token)
) strict;

create index push_devices_by_user on push_devices (user_id, id);

-- Owner: push_queue. Notifications to push. A newer notification of a kind replaces an older one.
create table push_queue (
    device_id integer not null references push_devices (id) on delete cascade,
    kind text not null,                    -- the notification's
    notification_id integer not null,
    queued_at integer not null,
    due_at integer not null,
    attempts integer not null,
    primary key (device_id, kind)
) strict, without rowid;

create index push_queue_by_due on push_queue (due_at);
create index push_queue_by_age on push_queue (queued_at);

-- Owner: push_queue. Broadcasts that are not queued for all apps yet.
create table push_broadcasts (
    notification_id integer primary key,
    kind text not null,
    last_device integer not null,          -- apps up to this id have it in their queue
    sent_at integer not null
) strict;

-- Owner: webhook_outbox. Events for the operator's systems, written with their facts. The ids that receivers see are
-- random, so that they stay unique after a restore.
create table webhook_events (
    id integer primary key autoincrement,
    event_id text not null unique,
    kind text not null,
    user_id integer,                       -- also of users who are deleted
    data text not null,                    -- JSON, without personal texts
    text text,                             -- what the user wrote, if the operator asks for it; until delivery or deletion
    state text not null check (state = 'pending' or state = 'delivered' or state = 'failed'),
    created_at integer not null,
    due_at integer not null,
    attempts integer not null,
    delivered_at integer,
    failure text                           -- code of the last failure
) strict;

create index webhook_events_by_due on webhook_events (state, due_at, id);
create index webhook_events_by_state on webhook_events (state, id);
create index webhook_events_by_time on webhook_events (created_at);
create index webhook_events_by_user on webhook_events (user_id) where text is not null;

-- Owner: feedback. Feedback messages. User and phone number are claims unless a token proved the user.
create table feedback (
    id integer primary key,
    user_id integer,
    phone_number text,
    is_verified integer not null check (is_verified in (0, 1)),
    client_network text,                   -- of an anonymous sender, for a day: rate limiting
    content text not null,
    created_at integer not null,
    state text not null default 'open' check (state = 'open' or state = 'in_progress' or state = 'closed'),
    assignee text,                         -- name of an administrator
    check (is_verified = 0 or user_id is not null)
) strict;

create index feedback_by_user on feedback (user_id, is_verified, created_at) where user_id is not null;
create index feedback_by_phone on feedback (phone_number) where phone_number is not null;
create index feedback_by_client on feedback (client_network, created_at) where client_network is not null;
create index feedback_of_user on feedback (user_id, id) where user_id is not null;
create index feedback_by_time on feedback (created_at);
create index feedback_by_client_time on feedback (created_at) where client_network is not null;
create index feedback_by_state on feedback (state, id);
create index feedback_by_assignee on feedback (assignee, id) where assignee is not null;

-- Owner: feedback. Replies of the staff, each also sent as a notification.
create table feedback_replies (
    id integer primary key,
    feedback_id integer not null references feedback (id) on delete cascade,
    author text not null,                  -- as in audit
    content text not null,
    created_at integer not null
) strict;

create index feedback_replies_by_feedback on feedback_replies (feedback_id, id);

-- Owner: releases. Versions of the app. A release without a platform is for all platforms.
create table releases (
    id integer primary key,
    version text not null,                 -- semantic version
    version_code integer not null check (version_code >= 0),
    platform text,
    is_required integer not null check (is_required in (0, 1)), -- older clients must update
    notes text not null,
    download_url text,
    published_at integer not null,
    withdrawn_at integer                   -- clients no longer hear of it
) strict;

create unique index releases_by_platform on releases (coalesce(platform, ''), version_code) where withdrawn_at is null;
create index releases_by_code on releases (version_code);
create index releases_required on releases (version_code) where is_required = 1;
