-- Tokens are kept in the order in which they were issued, and found by their user: signing in writes to the last page of
-- them and to one of a small index, instead of to one among all tokens that has to be divided again and again.
drop trigger tokens_know_their_user;
drop trigger tokens_change;
drop trigger tokens_end;
drop index tokens_by_expiry;
alter table tokens rename to tokens_before;
alter table nameless_tokens rename to nameless_tokens_before;

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

insert into tokens (user_id, token_sha256, phone_number, email, user_created_at, expires_at, replaced_at, family, family_expires_at,
    created_at, label, signed_in_at, last_used_at)
select user_id, token_sha256, phone_number, email, user_created_at, expires_at, replaced_at, family, family_expires_at,
    created_at, label, signed_in_at, last_used_at
from tokens_before order by created_at;

create index tokens_by_user on tokens (user_id);
create index tokens_by_expiry on tokens (expires_at);

create trigger tokens_know_their_user after update of phone_number, email, created_at on users
begin
    update tokens set phone_number = new.phone_number, email = new.email, user_created_at = new.created_at
    where user_id = new.id;
end;

create table nameless_tokens (
    token_sha256 blob primary key,
    user_id integer not null
) strict, without rowid;

insert into nameless_tokens (token_sha256, user_id) select token_sha256, user_id from nameless_tokens_before;
drop table nameless_tokens_before;
drop table tokens_before;

create trigger tokens_change after update of token_sha256, user_id, phone_number, email, user_created_at, expires_at,
    replaced_at, family_expires_at on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
end;

create trigger tokens_end after delete on tokens
begin
    insert into token_changes (id, number) values (0, 1) on conflict (id) do update set number = number + 1;
    delete from nameless_tokens where token_sha256 = old.token_sha256;
end;
