-- Invites.

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
