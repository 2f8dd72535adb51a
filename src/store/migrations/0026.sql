-- Castings that are still what they were when they were stored need not be parsed again to be listed. Those from before have
-- no checksum, and are.
alter table history add column json_data_crc32 integer;
