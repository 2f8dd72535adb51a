-- Whoever ends a family knows its user, who has few, and codes are few. These indexes cost every sign-in a page each.
drop index tokens_by_family;
drop index codes_by_expiry;
