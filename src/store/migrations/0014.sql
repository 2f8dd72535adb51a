-- What has to be asked for twice.

-- Owner: confirmations. Tokens by which an administrator confirms what cannot be taken back, kept as SHA-256.
create table confirmations (
    token_sha256 blob primary key,
    actor text not null,
    action text not null,
    expires_at integer not null
) strict, without rowid;

create index confirmations_by_expiry on confirmations (expires_at);
