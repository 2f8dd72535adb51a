-- Keys of requests are found by key and caller, in this order: keys that begin with the time, which clients make one after
-- the other, stand together then, and writing them touches the last page of the index instead of one anywhere in it.
drop index idempotency_keys_by_caller;
create index idempotency_keys_by_key on idempotency_keys (key, caller);
