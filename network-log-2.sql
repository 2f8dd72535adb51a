-- The second step of the network log's schema: entries in blocks. A row with its indexes took 34 thousand instructions for
-- each request, nearly as many as a request; an entry in a block takes a tenth.

drop trigger access_log_deleted;
drop index access_log_by_time;
drop index access_log_by_user;
drop index access_log_by_client;
drop index access_log_by_request;
drop index access_log_failed;
drop index access_log_by_status;
drop index access_log_by_route;

-- Owner: network_log. The entries of the first version of the schema. The server moves them into blocks.
alter table access_log rename to access_log_unpacked;

-- Owner: network_log. The requests of up to ten minutes. A block is found by its time, because its id is the number of its
-- ten minutes since 1970 times 1048576, plus a sequence number.
create table access_log_blocks (
    id integer primary key,
    last_at integer not null,              -- the time of the last entry that was added
    entries integer not null,
    failed integer not null,
    next_position integer not null,        -- the position of the next entry; those of deleted entries stay unused
    rows text not null                     -- a JSON array of arrays, see the view `access_log`
) strict;

-- Owner: network_log. How many entries of a block have a user (`u10001`), client address (`c192.0.2.1`), route (`r/auth/login`),
-- failed status (`s404`), or the beginning of a request id (`q…`).
create table access_log_keys (
    key text not null,
    block integer not null,
    entries integer not null,
    primary key (key, block)
) strict, without rowid;

create index access_log_users_by_user on access_log_users (user_id, period);
create index access_log_day_users_by_user on access_log_day_users (user_id, day);

-- Owner: network_log. Requests that are in no block, because the queue in memory was full.
create table access_log_unlisted (
    period integer not null,               -- ten minutes, counted from 1970
    route text not null,                   -- empty if no endpoint matched
    entries integer not null,
    primary key (period, route)
) strict, without rowid;

-- A row for each request. The route is the template, never the path.
create view access_log (id, at, user_id, client_ip, method, route, status, duration_us, request_id) as
    select blocks.id * 16384 + json_extract(entry.value, '$[0]'), json_extract(entry.value, '$[1]'),
        json_extract(entry.value, '$[2]'), json_extract(entry.value, '$[3]'), json_extract(entry.value, '$[4]'),
        json_extract(entry.value, '$[5]'), json_extract(entry.value, '$[6]'), json_extract(entry.value, '$[7]'),
        json_extract(entry.value, '$[8]')
    from access_log_blocks as blocks, json_each(blocks.rows) as entry;
