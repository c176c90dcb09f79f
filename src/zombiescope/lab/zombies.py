"""How scenarios make a zombie, and how they make the kernel walk them.

A page that was charged to a cgroup keeps its memory part when the directory goes.
"""

MANY = r"""
def as_many(leak_one, count):  # or as many as a slow machine makes in a minute
    end = time.monotonic() + 60
    for number in range(count):
        if time.monotonic() > end:
            return number
        leak_one(number)
    return count
"""

MAKER = (
    MANY
    + r"""
def leak(parent, pins, back, number):
    child = f"{parent}/job-{number}"
    os.mkdir(child)
    with open(child + "/cgroup.procs", "w") as file:
        file.write("0")
    fd = os.open(f"{pins}/{number}", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fd, b"x")
    os.close(fd)
    with open(back + "/cgroup.procs", "w") as file:
        file.write("0")
    os.rmdir(child)

def leak_all(parent, pins, back, count):
    leaky = os.fork()
    if leaky == 0:
        name_is("leaky")
        dies_with_its_parent()
        as_many(lambda number: leak(parent, pins, back, number), count)
        os._exit(0)
    os.waitpid(leaky, 0)
"""
)
"""`back` is a cgroup to go to when the child is removed."""

WALKER = (
    MANY
    + r"""
def walk_them():
    if os.fork() == 0:
        name_is("walker")
        dies_with_its_parent()
        drop = os.open("/proc/sys/vm/drop_caches", os.O_WRONLY)
        wait_for_the_word()
        while True:
            os.write(drop, b"2")

def keep_on(leak_one, every_s, number):
    while True:
        time.sleep(every_s)
        leak_one(number)
        number += 1
"""
)
"""Dropping slab caches asks every memory cgroup, the dying too."""
