"""Files of arrays: the same bytes for the same content, and nothing beside them, whenever a process is killed."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from sadrec._core.files import read_arrays, write_arrays

ARRAYS = {
    "wide": np.arange(6.0).reshape(2, 3),
    "single": np.arange(5, dtype=np.float32),
    "bytes": np.frombuffer(b"abc", np.uint8),
    "none": np.zeros((0, 4), np.float32),
    "strided": np.arange(20, dtype=np.int32).reshape(4, 5)[::2, ::2],
    "other end first": np.arange(4, dtype=">i8"),
}


def test_what_is_written_is_read_here_and_by_others(tmp_path):
    write_arrays(tmp_path / "a", ARRAYS, {"kind": "test"})
    arrays, header = read_arrays(tmp_path / "a", "a test")
    assert header == {"kind": "test"}
    for written in (arrays, load_file(tmp_path / "a")):
        assert sorted(written) == sorted(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(written[name], array)
            assert written[name].dtype == array.dtype.newbyteorder("<")


def test_the_same_content_in_another_order_is_the_same_bytes(tmp_path):
    write_arrays(tmp_path / "a", ARRAYS, {"kind": "test"})
    write_arrays(tmp_path / "b", dict(reversed(ARRAYS.items())), {"kind": "test"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


WRITES = """
import pathlib, resource, signal, sys
import numpy as np
from sadrec._core import files as _files

def kill(event, arguments):
    if event == sys.argv[2]:
        signal.raise_signal(signal.SIGKILL)

sys.addaudithook(kill)
if sys.argv[2] == "writing":  # past this size the system ends the process in the middle of the file
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5))
_files.write_arrays(pathlib.Path(sys.argv[1], "a"), {"x": np.zeros(10**6)}, {})
"""


@pytest.mark.parametrize("moment", ["writing", "os.chmod", "os.rename"])
def test_what_a_kill_leaves_is_cleared_by_the_next_write(tmp_path, moment):
    run = subprocess.run([sys.executable, "-c", WRITES, str(tmp_path), moment], env=os.environ)
    assert run.returncode in (-signal.SIGKILL, -signal.SIGXFSZ)
    assert [*tmp_path.iterdir()]
    write_arrays(tmp_path / "a", ARRAYS, {})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a device or a pipe"):
        write_arrays(tmp_path / "pipe", ARRAYS, {})
    assert (tmp_path / "pipe").is_fifo() and len([*tmp_path.iterdir()]) == 1


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "a").symlink_to(victim)
    write_arrays(tmp_path / "a", ARRAYS, {})
    assert victim.read_text() == "precious" and not (tmp_path / "a").is_symlink()
