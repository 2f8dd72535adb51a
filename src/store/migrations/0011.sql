-- Notifications, preferences, feedback, releases.

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
