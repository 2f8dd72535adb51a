-- Moderation: words that are found by their sound, the list's version, two services that are compared.

create table words_before as select folded, word, type, created_at from words;
drop table words;

-- Owner: words. The local list of content moderation, and the phrases that are innocent although they contain one.
create table words (
    folded text primary key,               -- what the word is compared as: no two words fold alike
    word text not null,
    type text not null,
    by_sound integer not null check (by_sound in (0, 1)), -- found by its pronunciation too
    created_at integer not null
) strict, without rowid;

create index words_by_type on words (type, folded);

insert into words (folded, word, type, by_sound, created_at)
    select folded, word, type, 1, created_at from words_before;
drop table words_before;

-- Owner: words. The changes of both, numbered without gaps: the last number is the list's version, by which every
-- process notices a change. `many` stands for a change that is not told word by word. Old ones are forgotten.
create table word_changes (
    version integer primary key autoincrement,
    at integer not null,
    action text not null check (action in ('added', 'removed', 'many')),
    folded text not null,
    word text,
    type text,
    by_sound integer
) strict;

drop index violations_by_user;
create index violations_by_time on violations (created_at, id, user_id);
create index violations_by_user on violations (user_id, created_at);
create index violations_by_type on violations (violation_type, created_at);
create index violations_by_content on violations (content_type, created_at);

-- Owner: moderation. Texts on which the local list and the external service did not agree, masked. Only the newest are
-- kept. Nobody's name stands here: it is the services that are judged.
create table disagreements (
    id integer primary key autoincrement,
    content_type text not null check (content_type in ('nickname', 'signature', 'question', 'answer')),
    decided_by text not null,              -- whose word counted
    local_allowed integer not null check (local_allowed in (0, 1)),
    external_allowed integer not null check (external_allowed in (0, 1)),
    words text not null,                   -- JSON array: what the local list found
    labels text not null,                  -- JSON array: what the external service found
    masked_text text not null,
    created_at integer not null,
    check (local_allowed <> external_allowed)
) strict;
