-- Yarrow's whole schema, as it is today. A new database is made from this file; an older one gets the steps of
-- src/store/migrations that it lacks, and a test holds both equal.
--
-- Times are integer milliseconds since 1970, UTC. Every table names its owner: the one file in src/ops whose SQL
-- reads and writes it. Invariants that SQL can hold are constraints; the others are stated.

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
    gender text not null default 'unknown' check (gender in ('unknown', 'male', 'female', 'other')),
    birthday text,                         -- yyyy-mm-dd
    signature text not null default '',
    created_at integer not null,
    check (phone_number is not null or email is not null)
) strict;

-- Owner: codes. At most one live verification code for an address and purpose.
-- Only an HMAC of the code is kept. A try is taken and the code consumed in one conditional update each.
create table codes (
    address text not null,
    purpose text not null check (purpose in ('sign_in')),
    code_hmac blob not null,
    tries_left integer not null check (tries_left >= 0),
    expires_at integer not null,
    primary key (address, purpose)
) strict, without rowid;

create index codes_by_expiry on codes (expires_at);

-- Owner: codes. One row for every message that was sent or may have been sent: the sending budgets are counted from
-- it over rolling windows, so that neither a restart nor another address of the caller resets them.
create table code_sends (
    id integer primary key,
    address text not null,
    client_network text not null,          -- the IPv4 address, or the /64 of the IPv6 address
    sent_at integer not null
) strict;

create index code_sends_by_address on code_sends (address, sent_at);
create index code_sends_by_client on code_sends (client_network, sent_at);
create index code_sends_by_time on code_sends (sent_at);

-- Owner: tokens. Sign-in tokens, kept as SHA-256. A family is one sign-in and the tokens that replaced each other
-- since; at most one token of a family is not replaced. A replaced token works for a short grace, and ends its family
-- when it is used after that.
create table tokens (
    token_sha256 blob primary key,
    user_id integer not null references users (id) on delete cascade,
    expires_at integer not null,
    replaced_at integer,
    family blob not null,                  -- the SHA-256 of the family's first token
    family_expires_at integer not null,    -- no token of the family outlives this
    created_at integer not null
) strict, without rowid;

create index tokens_by_user on tokens (user_id, created_at);
create index tokens_by_family on tokens (family);
create index tokens_by_expiry on tokens (expires_at);

-- Owner: words. The local list of content moderation, and the phrases that are innocent although they contain one.
create table words (
    folded text primary key,               -- what the word is compared as: no two words fold alike
    word text not null,
    type text not null,
    created_at integer not null
) strict, without rowid;

create table allowed_phrases (
    phrase text primary key,
    created_at integer not null
) strict, without rowid;

-- Owner: violations. One row for every text of a user that was refused. The text is kept masked only.
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

create index violations_by_user on violations (user_id, id);

-- Owner: history. The castings that first-generation clients store, keyed by the client's own record id.
-- `sequence` numbers a user's records from 1 in the order in which the server first saw them.
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
    unique (user_id, local_record_id)
) strict;

create index history_deactivated on history (deactivated_at) where deactivated_at is not null;

-- Owner: interpretation. One row a model call, written before the call and finished after it.
create table interpretations (
    id integer primary key,
    trace_id text not null unique,         -- 32 hexadecimal digits, W3C Trace Context
    user_id integer not null,
    question_type text,
    question text not null,
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
    check ((status = 'running') = (finished_at is null))
) strict;

create index interpretations_by_user on interpretations (user_id, id);
create index interpretations_running on interpretations (id) where status = 'running';

-- Owner: access_log. One row a request, written in batches behind it. The route is the template, never the path.
create table access_log (
    id integer primary key,
    at integer not null,
    user_id integer,
    client_ip text not null,
    method text not null,
    route text,
    status integer not null,
    duration_us integer not null,
    request_id text not null
) strict;
