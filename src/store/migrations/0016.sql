-- The network log in blocks: a row for thousands of requests, and not for each.

-- Owner: access_log. Entries of the network log, written in batches behind the requests and numbered in their order
-- without gaps. `entries` is a JSON array of [at, user_id, client_ip, method, route, status, duration_us, request_id],
-- at most 4096 of them. The route is the template, never the path.
create table access_log_blocks (
    first_entry integer primary key,
    last_entry integer not null,
    first_at integer not null,             -- the earliest and the latest entry; clocks may have been set back
    last_at integer not null,
    entries text not null
) strict;

insert into access_log_blocks (first_entry, last_entry, first_at, last_at, entries)
    select min(id), min(id) + count(*) - 1, min(at), max(at),
        json_group_array(
            json_array(at, user_id, client_ip, method, route, status, duration_us, request_id) order by id)
    from access_log group by (id - (select min(id) from access_log)) / 4096;

drop table access_log;

-- Owner: access_log. One row a request, for whoever looks by hand; it unpacks every block that is asked for.
create view access_log as
    select access_log_blocks.first_entry + entry.key as id, entry.value ->> 0 as at, entry.value ->> 1 as user_id,
        entry.value ->> 2 as client_ip, entry.value ->> 3 as method, entry.value ->> 4 as route,
        entry.value ->> 5 as status, entry.value ->> 6 as duration_us, entry.value ->> 7 as request_id
    from access_log_blocks, json_each(access_log_blocks.entries) as entry;
