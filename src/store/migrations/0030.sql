-- A refund knows whether somebody who asked for it was told that it was done. Of those from before it is taken for granted.
alter table payment_refunds add column told_at integer;

update payment_refunds set told_at = finished_at where state = 'succeeded';

-- An order knows when a person last decided about it, so that it is kept for as long as anything else about it.
alter table payment_orders add column settled_at integer;

-- What went back had come in, although nobody told so.
update payment_orders set paid_fen = amount_fen, paid_at = coalesce(paid_at, refunded_at, created_at)
where refunded_fen > 0 and paid_fen = 0;

-- Codes of second factors that were used are remembered one by one, so that one of a clock that was ahead keeps nobody out.
create table admin_used_codes (
    admin_id integer not null references admin_second_factors (admin_id) on delete cascade,
    step integer not null,
    primary key (admin_id, step)
) strict, without rowid;

insert into admin_used_codes (admin_id, step)
select admin_id, last_step from admin_second_factors where confirmed_at is not null;

alter table admin_second_factors drop column last_step;
