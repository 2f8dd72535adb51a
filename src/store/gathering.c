/* Hands a commit's pages to the system in a few calls.
 *
 * SQLite writes each page to the write-ahead log in two calls, its header of 24 bytes and the page, and to be called is
 * most of what either costs the system. This is a shim, as SQLite calls what stands between it and its VFS: what is
 * appended to a log is gathered, and written in as few calls as there is room for. Every other file is the system's VFS's
 * alone, and so is what a log is asked for beside bytes.
 *
 * Whatever anybody may rely on has been written before, in the order in which SQLite wrote it:
 * - The frame that ends a commit is not gathered. It goes to the system by itself, after all that was gathered, and only
 *   then SQLite syncs the log and tells others of the commit.
 * - What is gathered is written before the log is read, synced, measured or truncated, and before anything is written
 *   elsewhere in it. If that fails the caller hears of it and it stays gathered, so nobody goes on without it.
 * - What is gathered when the connection gives back the lock of writers belongs to a transaction that was rolled back. It
 *   is dropped: from then on the place in the log may be somebody else's.
 *
 * SQLite calls `gathering_begins` when it is first used (SQLITE_EXTRA_INIT in .cargo/config.toml), so that no other code
 * here has to reach into it. */

#include <sqlite3.h>
#include <string.h>

/* Of the file's format: a frame's header, in which there is something at COMMIT_MARK if the frame ends a commit. */
enum { FRAME_HEADER = 24, COMMIT_MARK = 4, COMMIT_MARK_BYTES = 4 };
/* The number of the lock of writers. */
enum { WRITE_LOCK = 0 };
/* What SQLite's VFS for Unix hands to the system at once, at most. */
enum { ROOM = 0x1ffff };

/* What a database file or a log has behind what the system's VFS keeps of it. */
typedef struct Extra Extra;
struct Extra {
    /* The system's, but for those below. */
    sqlite3_io_methods methods;
    const sqlite3_io_methods *system;
    /* Of a database file: its log, while that is open. Of a log: its database file. */
    Extra *other;
    /* What is still to be written to a log, from `offset` on. */
    unsigned char *gathered;
    int length;
    sqlite3_int64 offset;
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs gathering_vfs;

static Extra *extra_of(sqlite3_file *file) {
    return (Extra *)((char *)file + (gathering_vfs.szOsFile - (int)sizeof(Extra)));
}

/* Whether these bytes, of which SQLite writes so many by themselves, are the header of a frame that ends no commit. */
static int is_followed_by_others(const unsigned char *bytes, int length) {
    static const unsigned char none[COMMIT_MARK_BYTES];
    return length == FRAME_HEADER && memcmp(bytes + COMMIT_MARK, none, COMMIT_MARK_BYTES) == 0;
}

static int write_gathered(sqlite3_file *log) {
    Extra *extra = extra_of(log);
    if (extra->length == 0) return SQLITE_OK;
    int outcome = extra->system->xWrite(log, extra->gathered, extra->length, extra->offset);
    if (outcome == SQLITE_OK) extra->length = 0;
    return outcome;
}

static void gather(Extra *extra, const void *bytes, int length) {
    memcpy(extra->gathered + extra->length, bytes, (size_t)length);
    extra->length += length;
}

static int log_write(sqlite3_file *log, const void *bytes, int length, sqlite3_int64 offset) {
    Extra *extra = extra_of(log);
    int begins_frame = is_followed_by_others(bytes, length);
    int goes_on = extra->length > 0 && offset == extra->offset + extra->length && length <= ROOM - extra->length;
    if (goes_on && (begins_frame || length != FRAME_HEADER)) {
        gather(extra, bytes, length);
        return SQLITE_OK;
    }
    int outcome = write_gathered(log);
    if (outcome != SQLITE_OK) return outcome;
    if (begins_frame) {
        if (extra->gathered == NULL) extra->gathered = sqlite3_malloc(ROOM);
        if (extra->gathered != NULL) {
            extra->offset = offset;
            gather(extra, bytes, length);
            return SQLITE_OK;
        }
    }
    return extra->system->xWrite(log, bytes, length, offset);
}

static int log_read(sqlite3_file *log, void *bytes, int length, sqlite3_int64 offset) {
    int outcome = write_gathered(log);
    return outcome == SQLITE_OK ? extra_of(log)->system->xRead(log, bytes, length, offset) : outcome;
}

static int log_truncate(sqlite3_file *log, sqlite3_int64 length) {
    int outcome = write_gathered(log);
    return outcome == SQLITE_OK ? extra_of(log)->system->xTruncate(log, length) : outcome;
}

static int log_sync(sqlite3_file *log, int flags) {
    int outcome = write_gathered(log);
    return outcome == SQLITE_OK ? extra_of(log)->system->xSync(log, flags) : outcome;
}

static int log_size(sqlite3_file *log, sqlite3_int64 *length) {
    int outcome = write_gathered(log);
    return outcome == SQLITE_OK ? extra_of(log)->system->xFileSize(log, length) : outcome;
}

static int log_close(sqlite3_file *log) {
    Extra *extra = extra_of(log);
    if (extra->other != NULL) extra->other->other = NULL;
    sqlite3_free(extra->gathered);
    return extra->system->xClose(log);
}

static int database_lock(sqlite3_file *database, int first, int count, int flags) {
    Extra *extra = extra_of(database);
    if (extra->other != NULL && first == WRITE_LOCK && (flags & SQLITE_SHM_UNLOCK) && (flags & SQLITE_SHM_EXCLUSIVE)) {
        extra->other->length = 0;
    }
    return extra->system->xShmLock(database, first, count, flags);
}

static int gathering_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *used_flags) {
    (void)vfs;
    int outcome = system_vfs->xOpen(system_vfs, name, file, flags, used_flags);
    int is_log = flags & SQLITE_OPEN_WAL, is_database = flags & SQLITE_OPEN_MAIN_DB;
    if (outcome != SQLITE_OK || !(is_log || is_database)) return outcome;
    Extra *extra = extra_of(file);
    memset(extra, 0, sizeof *extra);
    extra->system = file->pMethods;
    extra->methods = *file->pMethods;
    if (is_database) {
        /* Without shared memory there is no log that others know of. */
        if (extra->methods.iVersion < 2 || extra->methods.xShmLock == NULL) return SQLITE_OK;
        extra->methods.xShmLock = database_lock;
    } else {
        extra->other = extra_of(sqlite3_database_file_object(name));
        extra->other->other = extra;
        extra->methods.xClose = log_close;
        extra->methods.xRead = log_read;
        extra->methods.xWrite = log_write;
        extra->methods.xTruncate = log_truncate;
        extra->methods.xSync = log_sync;
        extra->methods.xFileSize = log_size;
    }
    file->pMethods = &extra->methods;
    return SQLITE_OK;
}

int gathering_begins(const char *unused) {
    (void)unused;
    system_vfs = sqlite3_vfs_find(NULL);
    gathering_vfs = *system_vfs;
    gathering_vfs.zName = "gathering";
    /* SQLite's own files end at a multiple of eight bytes, as what stands behind them must begin. */
    gathering_vfs.szOsFile = (system_vfs->szOsFile + 7) / 8 * 8 + (int)sizeof(Extra);
    gathering_vfs.xOpen = gathering_open;
    return sqlite3_vfs_register(&gathering_vfs, 1);
}
