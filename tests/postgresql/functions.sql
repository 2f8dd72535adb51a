-- Functions of SQLite that tests use when they inspect or change rows behind the service's back.
create function unixepoch() returns bigint language sql as $$
    select cast(floor(extract(epoch from clock_timestamp())) as bigint)
$$;
create function unixepoch(text) returns bigint language sql as $$
    select case when $1 = 'now' then unixepoch() else cast(extract(epoch from cast($1 as timestamp)) as bigint) end
$$;
create function group_concat_step(text, text) returns text language sql as $$
    select case when $1 is null then $2 else coalesce($1 || ',' || $2, $1) end
$$;
create aggregate group_concat(text) (sfunc = group_concat_step, stype = text);
create function group_concat_step(text, text, text) returns text language sql as $$
    select case when $1 is null then $2 else coalesce($1 || $3 || $2, $1) end
$$;
create aggregate group_concat(text, text) (sfunc = group_concat_step, stype = text);
create function sum_step(bigint, boolean) returns bigint language sql as $$ select $1 + cast($2 as integer) $$;
create aggregate sum(boolean) (sfunc = sum_step, stype = bigint, initcond = '0');
create function hex(bytea) returns text language sql as $$ select upper(encode($1, 'hex')) $$;
create function zeroblob(integer) returns bytea language sql as $$ select decode(repeat('00', $1), 'hex') $$;
create function randomblob(integer) returns bytea language sql as $$
    select decode(string_agg(lpad(to_hex(cast(floor(random() * 256) as integer)), 2, '0'), ''), 'hex')
    from generate_series(1, $1)
$$;
-- Formats of one number with leading zeros.
create function printf(text, bigint) returns text language sql as $$
    select lpad(case when right($1, 1) = 'x' then to_hex($2) else cast($2 as text) end,
        cast(substring($1 from '0(\d+)') as integer), '0')
$$;
create function date(bigint, text) returns text language sql as $$
    select to_char(to_timestamp($1) at time zone 'utc', 'YYYY-MM-DD')
$$;
create function date(text, text) returns text language sql as $$
    select to_char(case when $1 = 'now' then clock_timestamp() at time zone 'utc' else cast($1 as timestamp) end
        + cast($2 as interval), 'YYYY-MM-DD')
$$;
-- Members at the top of an object.
create function json_extract(text, text) returns bigint language sql as $$
    select cast(cast($1 as jsonb) ->> substr($2, 3) as bigint)
$$;
create function json_set(text, text, bigint) returns text language sql as $$
    select cast(jsonb_set(cast($1 as jsonb), array[substr($2, 3)], to_jsonb($3)) as text)
$$;
