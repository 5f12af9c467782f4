# System calls that the other programs do not make, or not in these combinations.
import errno
import fcntl
import mmap
import os
import stat


def attempt(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except OSError as error:
        return errno.errorcode[error.errno]


# Open and unlinked; duplicates share what they refer to, and each close of one is told.
fd = os.open("gone", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.unlink("gone")
copy = os.dup(fd)
os.write(fd, b"still here")
os.close(fd)
print(os.pread(copy, 100, 0), os.fstat(copy).st_nlink, os.path.exists("gone"))
os.ftruncate(copy, 5)
print(os.fstat(copy).st_size, os.lseek(copy, 0, os.SEEK_END))
os.close(copy)

# Access modes.
open("file", "w").write("text")
reader, writer = os.open("file", os.O_RDONLY), os.open("file", os.O_WRONLY)
print(attempt(os.write, reader, b"x"), attempt(os.read, writer, 1))
print(attempt(os.ftruncate, reader, 1), attempt(os.open, "file", os.O_CREAT | os.O_EXCL))
print(attempt(os.open, "file", os.O_DIRECTORY), attempt(os.open, ".", os.O_WRONLY))
os.close(reader), os.close(writer)

# A descriptor that was opened read-only may write what it was created for.
fd = os.open("read-only", os.O_WRONLY | os.O_CREAT, 0o444)
print(os.write(fd, b"created"), oct(os.fstat(fd).st_mode))
os.close(fd)

# A shared mapping, and what is read beside it.
with open("mapped", "w+b") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 8192) as mapping:
        mapping[4090:4100] = b"0123456789"
        print(os.pread(file.fileno(), 10, 4090))
        os.pwrite(file.fileno(), b"abc", 0)
        print(mapping[:3])
        mapping.flush()
        kept = mmap.mmap(file.fileno(), 8192)
kept[:4] = b"late"  # after its descriptor was closed
kept.close()
print(open("mapped", "rb").read(4))

# Holes.
with open("holes", "w+b") as file:
    file.truncate(1 << 20)
    os.pwrite(file.fileno(), b"x" * 4096, 1 << 19)
    print(os.lseek(file.fileno(), 0, os.SEEK_DATA), os.lseek(file.fileno(), 1 << 19, os.SEEK_HOLE))
    os.posix_fallocate(file.fileno(), 0, 2 << 20)
    os.fdatasync(file.fileno())
    print(os.fstat(file.fileno()).st_size)
    with open("range", "w+b") as target:
        print(os.copy_file_range(file.fileno(), target.fileno(), 8192, (1 << 19) - 4096, 100))
        print(os.fstat(target.fileno()).st_size)

# Locks, between processes.
with open("lock", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    if (child := os.fork()) == 0:
        with open("lock", "w") as other:
            print(attempt(fcntl.lockf, other, fcntl.LOCK_EX | fcntl.LOCK_NB), flush=True)
            print(attempt(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB), flush=True)
        os._exit(0)
    os.waitpid(child, 0)

# Directories: more than one answer's worth of entries, a change while it is read, seeks.
os.mkdir("many")
names = [f"entry-{number:04}-{'x' * 40}" for number in range(1000)]
for name in names:
    os.close(os.open(f"many/{name}", os.O_CREAT | os.O_WRONLY))
print(sorted(os.listdir("many")) == names)
with os.scandir("many") as entries:
    first = next(entries)
    for name in names:
        if name != first.name:
            os.unlink(f"many/{name}")
print(len(os.listdir("many")), attempt(os.rmdir, "many"))
print(sorted((entry.name, entry.is_dir()) for entry in os.scandir(".")))

# Names.
os.mkdir("directory")
print(attempt(os.rename, "directory", "file"), attempt(os.rename, "file", "directory"))
print(attempt(os.rename, "directory", "directory/inside"), attempt(os.unlink, "directory"))
os.link("file", "second")
print(os.stat("file").st_nlink, os.path.samefile("file", "second"))
os.symlink("file", "link")
os.link("link", "link-of-link", follow_symlinks=False)
print(os.readlink("link-of-link"), stat.S_ISLNK(os.lstat("link-of-link").st_mode))
os.symlink("loop", "loop")
print(attempt(os.stat, "loop"), attempt(os.stat, "n" * 300), attempt(os.stat, "file/below"))

# Attributes.
os.utime("file", ns=(1_000_000_001, -2_000_000_000))
os.utime("link", ns=(5, 6), follow_symlinks=False)
print(os.stat("file").st_mtime_ns, os.lstat("link").st_mtime_ns, os.stat("file").st_atime_ns)
print(attempt(os.setxattr, "file", "user.name", b"value"), attempt(os.listxattr, "file"))
print(attempt(os.getxattr, "file", "user.name"), attempt(os.removexattr, "file", "user.name"))
print(attempt(os.getxattr, "file", "user.name"), attempt(os.setxattr, "file", "user.big", b"b" * 3000))
print(os.statvfs(".").f_namemax, os.access("file", os.X_OK), os.access("file", os.R_OK))

# Pipes by name, between processes.
os.mkfifo("fifo")
if (child := os.fork()) == 0:
    open("fifo", "w").write("through the pipe")
    os._exit(0)
print(open("fifo").read(), os.waitpid(child, 0)[1])
