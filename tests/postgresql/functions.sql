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
