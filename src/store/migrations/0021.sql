-- Whoever has looked a token up remembers it from now on, and what is read of its user is read by itself.
drop view bearer_coins;
drop view bearers;

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
