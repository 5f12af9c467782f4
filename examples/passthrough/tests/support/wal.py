# SQLite with a write-ahead log: a shared mapping and POSIX locks, from several processes and readers.
import os
import sqlite3

db = sqlite3.connect("test.db", timeout=20)
print(db.execute("PRAGMA journal_mode=wal").fetchone())
db.execute("CREATE TABLE t (writer, n)")
db.commit()

children = []
for writer in range(4):
    child = os.fork()
    if child == 0:
        own = sqlite3.connect("test.db", timeout=20)
        for n in range(50):
            with own:
                own.execute("INSERT INTO t VALUES (?, ?)", (writer, n))
        own.close()
        os._exit(0)
    children.append(child)

# A reader sees whole transactions only, and a snapshot while it reads.
reader = sqlite3.connect("test.db", timeout=20, isolation_level=None)
reader.execute("BEGIN")
seen = reader.execute("SELECT count(*) FROM t").fetchone()
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
print(seen == reader.execute("SELECT count(*) FROM t").fetchone())
reader.execute("COMMIT")
print(reader.execute("SELECT writer, count(*), sum(n) FROM t GROUP BY writer").fetchall())
print(reader.execute("PRAGMA integrity_check").fetchall(), sorted(os.listdir(".")))
reader.close()
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
print(sorted(os.listdir(".")))
