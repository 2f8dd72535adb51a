-- Finding entries of the network log.

-- Owner: access_log. Runs of entries of the network log, in its order and without gaps between them, that have been
-- counted. A row is written last of what belongs to it.
create table access_log_pieces (
    id integer primary key,
    first_entry integer not null,
    last_entry integer not null,
    first_at integer not null,             -- the earliest and the latest entry; clocks may have been set back
    last_at integer not null
) strict;

-- Owner: access_log. How many entries of a piece a client address (ip:…) or a user (user:…) has, and how many failed.
create table access_log_subjects (
    piece integer not null,
    subject text not null,
    entries integer not null,
    primary key (piece, subject)
) strict, without rowid;
