-- Whoever ends a family knows its user, who has few. Its index cost every sign-in a page of its own.
drop index tokens_by_family;
