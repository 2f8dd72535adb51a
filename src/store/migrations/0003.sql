-- Payments.

-- Owner: payment. Orders of coins. An order carries its own price, so that a changed price list changes no order, and
-- has no foreign key, so that it stays payable when its user is gone. States only move forward (created, paid,
-- credited, refunded; created, closed; closed, paid), but for `review`, out of which a person lets an order.
create table payment_orders (
    id integer primary key,
    order_no text not null unique,
    user_id integer not null,
    channel text not null,                 -- the gateway that the order was made with
    amount_fen integer not null check (amount_fen > 0),
    coin_count integer not null check (coin_count > 0),
    state text not null check (state in ('created', 'paid', 'credited', 'closed', 'refunded', 'review')),
    reason text,                           -- why a person must look, or how a person settled it
    trade_no text,                         -- the provider's number, once money came in
    refunded_fen integer not null default 0 check (refunded_fen between 0 and amount_fen),
    coins_returned integer not null default 0 check (coins_returned >= 0),
    coins_written_off integer not null default 0 check (coins_written_off >= 0),
    returns integer not null default 0,    -- ledger entries by which coins were taken back
    checks integer not null default 0,     -- times that the provider was asked on schedule
    next_check_at integer,                 -- when the provider is asked again; null once nothing is open
    asked_at integer,                      -- when the user last had the provider asked
    created_at integer not null,
    expires_at integer not null,           -- when the order string ends
    paid_at integer,
    credited_at integer,
    closed_at integer,
    refunded_at integer,
    check (coins_returned + coins_written_off <= coin_count),
    check (state <> 'review' or reason is not null)
) strict;

create index payment_orders_by_user on payment_orders (user_id, id);
create index payment_orders_by_state on payment_orders (state, id);
create index payment_orders_by_time on payment_orders (created_at, id);
create index payment_orders_due on payment_orders (channel, next_check_at) where next_check_at is not null;
create index payment_orders_open on payment_orders (user_id, amount_fen, coin_count, created_at) where state = 'created';
create unique index payment_orders_by_trade on payment_orders (channel, trade_no) where trade_no is not null;

-- Owner: payment. Everything that came in as a notification, as it came, and what was made of it. What the provider did
-- not sign is kept up to a number.
create table payment_callbacks (
    id integer primary key,
    received_at integer not null,
    channel text not null,
    is_genuine integer not null check (is_genuine in (0, 1)),
    verdict text not null check (verdict in ('credited', 'paid', 'closed', 'refunded', 'unchanged', 'review', 'rejected',
        'failed')),
    reason text,
    order_no text,                         -- as claimed; proved if the message is genuine
    trade_no text,
    notify_id text,
    replay_of integer,                     -- the callback that was judged again
    form blob not null                     -- the body, to the byte
) strict;

create index payment_callbacks_by_order on payment_callbacks (order_no, id) where order_no is not null;
create index payment_callbacks_refused on payment_callbacks (id) where is_genuine = 0;

-- Owner: payment. Money that was to go back. The number makes repetition safe, here and at the provider.
create table payment_refunds (
    refund_no text primary key,
    order_no text not null,
    amount_fen integer not null check (amount_fen > 0),
    state text not null check (state in ('requested', 'succeeded', 'refused')),
    reason text not null,
    actor text not null,
    failure text,                          -- the provider's code of the last failure
    asked_at integer not null,             -- when the provider was last asked for or about it
    created_at integer not null,
    finished_at integer,
    check ((state = 'requested') = (finished_at is null))
) strict, without rowid;

create index payment_refunds_by_order on payment_refunds (order_no, created_at);
create index payment_refunds_open on payment_refunds (asked_at) where state = 'requested';

-- Owner: payment. The books of the sandbox gateway: the provider's side, not ours.
create table sandbox_trades (
    order_no text primary key,
    version integer not null,
    trade text not null                    -- JSON
) strict, without rowid;
