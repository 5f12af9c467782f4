# What a write takes away, by calls that shells do not make.
import os

OTHER = 65534
CAPABILITY = b"\x01\x00\x00\x02" + b"\x00\x04\x00\x00" + b"\x00" * 12


def in_child(call, other):
    if (child := os.fork()) == 0:
        if other and os.getuid() == 0:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
        call()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def make(name):
    with open(name, "w") as file:
        file.write("text")
    os.chmod(name, 0o6777)
    return name


def show(name):
    attributes = [key for key in os.listxattr(name) if key.startswith("security.cap")]
    print(name, oct(os.stat(name).st_mode), attributes, os.stat(name).st_size)


def copy_range(name):
    source, target = os.open("source", os.O_RDONLY), os.open(name, os.O_RDWR)
    os.copy_file_range(source, target, 3)


def truncate_open(name):
    os.ftruncate(os.open(name, os.O_RDWR), 1)


def write_often(name):
    fd = os.open(name, os.O_RDWR)
    for _ in range(200):
        os.write(fd, b"x" * 100)


def reopen_truncated(name):
    os.close(os.open(name, os.O_WRONLY | os.O_TRUNC))


def read(name):
    os.read(os.open(name, os.O_RDWR), 10)


with open("source", "w") as file:
    file.write("source")
os.chmod("source", 0o644)
for other in (True, False):
    for call in (copy_range, truncate_open, write_often, reopen_truncated, read):
        name = make(f"{call.__name__}-{other}")
        print(in_child(lambda: call(name), other))
        show(name)

# The file's capabilities go with any write, also with one of root's.
if os.getuid() == 0:
    for call in (write_often, copy_range, truncate_open, read):
        name = make(f"capable-{call.__name__}")
        os.setxattr(name, "security.capability", CAPABILITY)
        show(name)
        call(name)
        show(name)
        # And once more, when the first write may have left a memo that there is nothing to strip.
        os.setxattr(name, "security.capability", CAPABILITY)
        call(name)
        show(name)
