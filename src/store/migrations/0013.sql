-- Listing the audit by time.

create index audit_by_time on audit (at);
