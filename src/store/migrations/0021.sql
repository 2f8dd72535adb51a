-- A token names its user from now on, and is kept beside the user's others: signing in writes to one tree less. Tokens that
-- were issued before are found by their hash alone. Whoever has looked a token up remembers it, and what is read of its
-- user is read by itself.
drop view bearer_coins;
drop view bearers;
drop trigger tokens_know_their_user;
alter table tokens rename to tokens_before;
drop index tokens_by_user;
drop index tokens_by_expiry;

create table tokens (
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
    last_used_at integer not null,         -- to the hour
    primary key (user_id, token_sha256)
) strict, without rowid;

insert into tokens (user_id, token_sha256, phone_number, email, user_created_at, expires_at, replaced_at, family, family_expires_at,
    created_at, label, signed_in_at, last_used_at)
select user_id, token_sha256, phone_number, email, user_created_at, expires_at, replaced_at, family, family_expires_at,
    created_at, label, signed_in_at, last_used_at
from tokens_before;

create index tokens_by_expiry on tokens (expires_at);

create trigger tokens_know_their_user after update of phone_number, email, created_at on users
begin
    update tokens set phone_number = new.phone_number, email = new.email, user_created_at = new.created_at
    where user_id = new.id;
end;

create table nameless_tokens (
    token_sha256 blob not null,
    user_id integer not null,
    primary key (token_sha256, user_id),
    foreign key (user_id, token_sha256) references tokens (user_id, token_sha256) on delete cascade
) strict, without rowid;

insert into nameless_tokens (token_sha256, user_id) select token_sha256, user_id from tokens_before;
drop table tokens_before;

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
