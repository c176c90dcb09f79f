"""How scenarios make a zombie: a page that was charged to a cgroup keeps its memory part when the directory goes."""

MAKER = r"""
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
"""
"""`back` is a cgroup to go to when the child is removed."""
