import tracemalloc

from manifactor._support.files import BoundedFile


def test_a_file_makes_no_room_for_bytes_that_it_does_not_have(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    tracemalloc.start()
    with BoundedFile(tmp_path / "a") as file:
        assert file.size == 10
        assert file.read(4) == b"0123"
        assert file.read(2**33) == b"456789"
        assert file.read(2**33) == b""
        file.seek(8)
        assert file.read() == b"89"
        file.seek(20)
        assert file.read(1) == b""
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
