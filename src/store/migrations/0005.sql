-- Addresses as HMACs where codes are sent, devices, and what is remembered of email addresses.

-- What is known of sent codes cannot be turned into HMACs here. It is some days old at most: live codes are asked for
-- again, and sending budgets begin anew.
drop table codes;

create table codes (
    address text not null,                 -- HMAC under the server key
    purpose text not null check (purpose in ('sign_in', 'address')),
    code_hmac blob not null,
    tries_left integer not null check (tries_left >= 0),
    expires_at integer not null,
    primary key (address, purpose)
) strict, without rowid;

create index codes_by_expiry on codes (expires_at);

delete from code_sends;

alter table tokens rename to former_tokens;

create table tokens (
    token_sha256 blob primary key,
    user_id integer not null references users (id) on delete cascade,
    expires_at integer not null,
    replaced_at integer,
    family blob not null,                  -- the SHA-256 of the family's first token
    family_expires_at integer not null,    -- no token of the family outlives this
    created_at integer not null,
    label text not null,                   -- what the device calls itself
    signed_in_at integer not null,         -- when the family began
    last_used_at integer not null          -- to the hour
) strict, without rowid;

insert into tokens (token_sha256, user_id, expires_at, replaced_at, family, family_expires_at, created_at, label,
    signed_in_at, last_used_at)
select token_sha256, user_id, expires_at, replaced_at, family, family_expires_at, created_at, '',
    coalesce((select first.created_at from former_tokens first where first.token_sha256 = former_tokens.family),
        created_at),
    created_at
from former_tokens;

drop table former_tokens;

create index tokens_by_user on tokens (user_id, created_at);
create index tokens_by_family on tokens (family);
create index tokens_by_expiry on tokens (expires_at);

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
