-- Events that were moved here from another datastore keep their cursors: whoever follows them goes on.
--
-- A cursor's transaction is `event.transaction + shift`. It is 0 but where a datastore with higher transactions was
-- imported: those events then have transactions below those of this server, negative ones as well.
ALTER TABLE event_floor ADD COLUMN shift bigint NOT NULL DEFAULT 0;
