-- An order knows for which app of the provider's it was made, and how much money came in for it, which need not be its price: so
-- more than the price may go back. Of orders from before the price is all that is known.
alter table payment_orders add column app_id text;
alter table payment_orders add column paid_fen integer not null default 0 check (paid_fen >= 0);

update payment_orders set paid_fen = amount_fen where paid_at is not null;

pragma writable_schema = on;

update sqlite_schema set sql = replace(sql, 'check (refunded_fen between 0 and amount_fen)', 'check (refunded_fen >= 0)')
where type = 'table' and name = 'payment_orders';

pragma writable_schema = reset;
