-- A refund knows whether somebody who asked for it was told that it was done. Of those from before it is taken for granted.
alter table payment_refunds add column told_at integer;

update payment_refunds set told_at = finished_at where state = 'succeeded';

-- An order knows when a person last decided about it, so that it is kept for as long as anything else about it.
alter table payment_orders add column settled_at integer;

-- What went back had come in, although nobody told so.
update payment_orders set paid_fen = amount_fen, paid_at = coalesce(paid_at, refunded_at, created_at)
where refunded_fen > 0 and paid_fen = 0;
