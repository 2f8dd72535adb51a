-- Every request looks its token up: what most answers tell of a user stands in it from now on.
drop view bearer_coins;
drop view bearers;
alter table tokens rename to tokens_before;
drop index tokens_by_user;
drop index tokens_by_expiry;
-- Whoever ends a family knows its user, who has few, and codes are few. These indexes cost every sign-in a page each.
drop index tokens_by_family;
drop index codes_by_expiry;

create table tokens (
    token_sha256 blob primary key,
    user_id integer not null references users (id) on delete cascade,
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
) strict, without rowid;

insert into tokens (token_sha256, user_id, phone_number, email, user_created_at, expires_at, replaced_at, family, family_expires_at,
    created_at, label, signed_in_at, last_used_at)
select token_sha256, user_id, phone_number, email, users.created_at, expires_at, replaced_at, family, family_expires_at,
    tokens_before.created_at, label, signed_in_at, last_used_at
from tokens_before join users on users.id = tokens_before.user_id;

drop table tokens_before;

create index tokens_by_user on tokens (user_id, created_at);
create index tokens_by_expiry on tokens (expires_at);

create trigger tokens_know_their_user after update of phone_number, email, created_at on users
begin
    update tokens set phone_number = new.phone_number, email = new.email, user_created_at = new.created_at
    where user_id = new.id;
end;

create view bearers as
    select tokens.token_sha256, tokens.user_id, tokens.expires_at, tokens.replaced_at, tokens.family_expires_at,
        tokens.last_used_at, tokens.phone_number, tokens.email, tokens.user_created_at, users.nickname, users.gender,
        users.birthday, users.signature
    from tokens join users on users.id = tokens.user_id;

create view bearer_coins as
    select tokens.token_sha256, tokens.user_id, tokens.expires_at, tokens.replaced_at, tokens.family_expires_at,
        tokens.last_used_at, tokens.phone_number, tokens.email, tokens.user_created_at,
        coalesce(balances.balance, 0) as coins
    from tokens left join balances on balances.user_id = tokens.user_id and balances.asset = 'coin';
