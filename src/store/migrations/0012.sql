-- Second factors of administrators.

-- Owner: admins. Second factors of administrators: secrets of authenticator apps, sealed under the server key. One
-- counts from its confirmation on. No code of `last_step` or before it counts again.
create table admin_second_factors (
    admin_id integer primary key references admins (id) on delete cascade,
    sealed_secret blob not null,
    confirmed_at integer,
    last_step integer not null,
    created_at integer not null
) strict;
