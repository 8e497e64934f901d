"""Runs a command for which no file can be locked, as on file systems without locks: flock and fcntl answer ENOSYS.

    python tests/support/without_locks.py hat preprocess ...

A filter of system calls (seccomp) does it, so that the kernel gives the answer. Child processes inherit it.
"""

import ctypes
import errno
import fcntl
import os
import platform
import struct
import sys

FLOCK, FCNTL = {"x86_64": (73, 72), "aarch64": (32, 25)}[platform.machine()]
# Instructions of BPF, and where the number of the system call and the second argument are.
LOAD, JUMP_IF_EQUAL, RETURN, NUMBER, SECOND = 0x20, 0x15, 0x06, 0, 24
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS
PROGRAM = (
    (LOAD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 3, 0, FLOCK),
    (JUMP_IF_EQUAL, 0, 3, FCNTL),
    (LOAD, 0, 0, SECOND),
    (JUMP_IF_EQUAL, 0, 1, fcntl.F_SETLK),
    (RETURN, 0, 0, REFUSE),
    (RETURN, 0, 0, ALLOW),
)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2

if __name__ == "__main__":
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in PROGRAM))
    program = struct.pack("HxxxxxxP", len(PROGRAM), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    failed = failed or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)
    if failed:
        sys.exit(f"no filter of system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])
