-- The schema of the network log, the file `network-log.db`. It is apart from the main database, so that its writes delay
-- no user's and its size is not in the backups.

-- Owner: network_log. One row for each request. The route is the template, never the path.
create table access_log (
    id integer primary key,
    at integer not null,
    user_id integer,
    client_ip text not null,
    method text not null,
    route text,                            -- none if no endpoint matched
    status integer not null,
    duration_us integer not null,
    request_id text not null,
    is_failed_sign_in integer not null check (is_failed_sign_in in (0, 1))
) strict;

-- Owner: network_log. The last purge of all entries. Requests that began before it are not logged any more.
create table access_log_purges (
    id integer primary key check (id = 1),
    purged_at integer not null
) strict;

create index access_log_by_time on access_log (at);
create index access_log_by_user on access_log (user_id, at) where user_id is not null;
create index access_log_by_client on access_log (client_ip, at);
create index access_log_by_request on access_log (request_id, at);
create index access_log_failed on access_log (at) where status >= 400;
create index access_log_by_status on access_log (status, at) where status >= 400;
create index access_log_by_route on access_log (route, at);

-- Owner: server_log. The newest events of the server's own log, which has no personal data.
create table server_log (
    id integer primary key autoincrement,
    at integer not null,
    level text not null,
    target text not null,
    message text not null,
    fields text not null                   -- a JSON object of texts
) strict;

-- Owner: network_log. The client addresses in the log, numbered, because reports over weeks read many of them.
create table access_log_addresses (
    id integer primary key,
    client_ip text not null unique
) strict;

-- Owner: network_log. Requests of a client address in ten minutes, so that a report over hours does not read every
-- request. Entries are counted by the batch in which they are written, because a trigger for each of them took three
-- times as long as writing them. The triggers below subtract deleted entries. A whole day is counted at once.
create table access_log_clients (
    period integer not null,               -- ten minutes, counted from 1970
    client_id integer not null references access_log_addresses (id),
    requests integer not null,
    failed integer not null,
    failed_sign_ins integer not null,
    users integer not null,
    busiest_minute integer not null,       -- requests in the busiest minute; entries deleted later still count
    last_minute integer not null,          -- the minute of the last entry, and its requests
    last_minute_requests integer not null,
    primary key (period, client_id)
) strict, without rowid;

create index access_log_clients_by_client on access_log_clients (client_id, period);

-- Owner: network_log. The users that a client address had in ten minutes.
create table access_log_users (
    client_id integer not null,
    period integer not null,
    user_id integer not null,
    primary key (client_id, period, user_id),
    foreign key (period, client_id) references access_log_clients (period, client_id) on delete cascade
) strict, without rowid;

-- Owner: network_log. The days (UTC, counted from 1970) whose requests the two tables below count. A day is added after
-- its end. A later entry removes it, and it is added again.
create table access_log_counted_days (
    day integer primary key
) strict;

-- Owner: network_log. Requests of a client address on a day, so that a report over weeks does not read every ten
-- minutes.
create table access_log_days (
    day integer not null,
    client_id integer not null references access_log_addresses (id),
    requests integer not null,
    failed integer not null,
    failed_sign_ins integer not null,
    users integer not null,
    busiest_minute integer not null,
    primary key (day, client_id)
) strict, without rowid;

create index access_log_days_by_client on access_log_days (client_id, day);

-- Owner: network_log. The users that a client address had on a day.
create table access_log_day_users (
    client_id integer not null,
    day integer not null,
    user_id integer not null,
    primary key (client_id, day, user_id),
    foreign key (day, client_id) references access_log_days (day, client_id) on delete cascade
) strict, without rowid;

create trigger access_log_deleted after delete on access_log begin
    update access_log_clients set
        requests = requests - 1,
        failed = failed - (old.status >= 400),
        failed_sign_ins = failed_sign_ins - old.is_failed_sign_in
    where period = old.at / 600000
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip);
    update access_log_days set
        requests = requests - 1,
        failed = failed - (old.status >= 400),
        failed_sign_ins = failed_sign_ins - old.is_failed_sign_in
    where day = old.at / 86400000
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip);
    delete from access_log_users where period = old.at / 600000 and user_id = old.user_id
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip)
        and not exists (select 1 from access_log where user_id = old.user_id and client_ip = old.client_ip
            and at >= old.at / 600000 * 600000 and at < old.at / 600000 * 600000 + 600000);
    delete from access_log_day_users where day = old.at / 86400000 and user_id = old.user_id
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip)
        and not exists (select 1 from access_log where user_id = old.user_id and client_ip = old.client_ip
            and at >= old.at / 86400000 * 86400000 and at < old.at / 86400000 * 86400000 + 86400000);
    delete from access_log_clients where period = old.at / 600000 and requests = 0
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip);
    delete from access_log_days where day = old.at / 86400000 and requests = 0
        and client_id = (select id from access_log_addresses where client_ip = old.client_ip);
    delete from access_log_addresses where client_ip = old.client_ip
        and not exists (select 1 from access_log_clients where client_id = access_log_addresses.id);
end;

create trigger access_log_users_inserted after insert on access_log_users begin
    update access_log_clients set users = users + 1 where period = new.period and client_id = new.client_id;
end;

create trigger access_log_users_deleted after delete on access_log_users begin
    update access_log_clients set users = users - 1 where period = old.period and client_id = old.client_id;
end;

create trigger access_log_day_users_inserted after insert on access_log_day_users begin
    update access_log_days set users = users + 1 where day = new.day and client_id = new.client_id;
end;

create trigger access_log_day_users_deleted after delete on access_log_day_users begin
    update access_log_days set users = users - 1 where day = old.day and client_id = old.client_id;
end;
