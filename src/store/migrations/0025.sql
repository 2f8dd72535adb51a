-- What many entries of a block of the network log would repeat stands in it once. Blocks of before say all of it themselves.
drop view access_log;

alter table access_log_blocks add column base_at integer not null default 0;
alter table access_log_blocks add column id_start text not null default '';
alter table access_log_blocks add column texts text not null default '[]';

create view access_log as
    select first_entry + entry.key as id, base_at + (entry.value ->> 0) as at, entry.value ->> 1 as user_id,
        entry.value ->> 2 as client_ip,
        iif(typeof(entry.value ->> 3) = 'integer', texts ->> (entry.value ->> 3), entry.value ->> 3) as method,
        iif(typeof(entry.value ->> 4) = 'integer', texts ->> (entry.value ->> 4), entry.value ->> 4) as route,
        entry.value ->> 5 as status, entry.value ->> 6 as duration_us,
        iif(typeof(entry.value ->> 7) = 'integer', id_start || printf('%08x', entry.value ->> 7), entry.value ->> 7)
            as request_id
    from access_log_blocks, json_each(access_log_blocks.entries) as entry;
