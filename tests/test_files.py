import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.errors import FileProblem, InvalidParams
from ide_bridge.workspace.beneath import Way, best_way
from ide_bridge.workspace.files import READ_LIMIT, WRITE_LIMIT, Files, Stamp
from ide_bridge.workspace.guard import Guard

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]


class Workspace:
    """A folder with its guard and files, addressed as a client would."""

    def __init__(self, folder, way):
        self.folder = folder
        self.guard = Guard([str(folder)], way=way)
        self.files = Files(self.guard)

    def read(self, path):
        return self.files.read(self.guard.locate(path))

    def write(self, path, content, **options):
        return self.files.write(self.guard.locate(path), content, **options)

    def stamp(self, path):
        with self.files.open_text(self.guard.locate(path)) as text:
            return text.stamp


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def ws(request, tmp_path):
    return Workspace(tmp_path, request.param)


def problem(call, *arguments):
    with pytest.raises(FileProblem) as caught:
        call(*arguments)
    return str(caught.value)


def test_a_missing_file_is_told_exactly_so(ws):
    assert problem(ws.read, "absent.txt") == "failed to read file: File not found"


@pytest.mark.parametrize(
    "text", ["", "x", "a\nb\n", "a\r\nb\r\n", "a\rb", "\ufeffmark\n", "é𝄞 \u2028", "late\0nul".rjust(9000)]
)
def test_text_is_read_as_it_is_and_writing_it_back_changes_nothing(ws, text):
    (ws.folder / "f").write_bytes(text.encode())
    assert ws.read("f") == text
    ws.write("f", text)
    assert (ws.folder / "f").read_bytes() == text.encode()


@given(text=st.text(), old=st.one_of(st.none(), st.text()))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_is_read_except_for_line_ends(tmp_path_factory, text, old):
    ws = Workspace(tmp_path_factory.mktemp("ws"), best_way())
    if old is not None:
        (ws.folder / "f").write_bytes(old.encode())
    ws.write("f", text)
    if "\0" not in text:
        assert ws.read("f").replace("\r\n", "\n") == text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\0b", "Not a text file (binary)"),
        (b"x" * 8191 + b"\0", "Not a text file (binary)"),
        (b"ab\xff", "Not UTF-8 text (byte 2)"),
        ("é".encode()[:1], "Not UTF-8 text (byte 0)"),
        ("hello".encode("utf-16"), "Not UTF-8 text (UTF-16 by its byte order mark)"),
        (b"\xfe\xff" + "hello".encode("utf-16-be"), "Not UTF-8 text (UTF-16 by its byte order mark)"),
        (b"\xed\xa0\x80", "Not UTF-8 text (byte 0)"),
    ],
)
def test_what_is_no_text_is_told(ws, data, text):
    (ws.folder / "f").write_bytes(data)
    assert problem(ws.read, "f") == f"failed to read file: {text}"


def test_the_largest_file_is_read_and_one_byte_more_is_not(ws):
    (ws.folder / "f").write_bytes(b"x" * READ_LIMIT)
    assert len(ws.read("f")) == READ_LIMIT
    with (ws.folder / "f").open("ab") as file:
        file.write(b"x")
    assert problem(ws.read, "f") == "failed to read file: File too large (11 MiB, the limit is 10 MiB)"
    os.truncate(ws.folder / "f", 1 << 40)
    assert "File too large" in problem(ws.read, "f")


def test_the_size_is_known_before_the_text_is_read(ws):
    (ws.folder / "f").write_text("hello", encoding="utf-8")
    text = ws.files.open_text(ws.guard.locate("f"))
    assert text.size == 5
    assert text.read() == "hello"
    text.close()


def test_closing_while_a_thread_reads_does_not_put_another_file_in_its_place(ws, monkeypatch):
    (ws.folder / "f").write_text("mine", encoding="utf-8")
    (ws.folder / "other").write_text("else", encoding="utf-8")
    text = ws.files.open_text(ws.guard.locate("f"))
    real = os.read

    def overtaken(descriptor, size):
        text.close()
        with (ws.folder / "other").open("rb"):
            return real(descriptor, size)

    monkeypatch.setattr(os, "read", overtaken)
    assert text.read() == "mine"


def test_what_was_closed_is_not_read(ws):
    (ws.folder / "f").touch()
    text = ws.files.open_text(ws.guard.locate("f"))
    text.close()
    with (ws.folder / "f").open("rb") as next_with_that_number:
        text.close()
        with pytest.raises(ValueError, match="before"):
            text.read()
        assert next_with_that_number.read() == b""


def test_a_file_that_grows_or_shrinks_while_it_is_read_is_read_to_its_end(ws):
    (ws.folder / "f").write_text("hello", encoding="utf-8")
    with ws.files.open_text(ws.guard.locate("f")) as text:
        (ws.folder / "f").write_text("hello, world", encoding="utf-8")
        assert text.read() == "hello, world"
    with ws.files.open_text(ws.guard.locate("f")) as text:
        os.truncate(ws.folder / "f", 3)
        assert text.read() == "hel"


def test_a_file_that_grows_beyond_the_limit_while_it_is_read_is_refused(ws):
    (ws.folder / "f").write_text("hello", encoding="utf-8")
    with ws.files.open_text(ws.guard.locate("f")) as text:
        os.truncate(ws.folder / "f", READ_LIMIT + 5)
        assert "File too large" in problem(text.read)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs files that say their size is 0")
def test_files_without_a_size_are_read_whole():
    ws = Workspace("/proc/self", best_way())
    assert ws.read("status").startswith("Name:")


def test_writing_makes_the_folders_on_the_way(ws):
    ws.write("a/b/c/f.txt", "hello")
    assert (ws.folder / "a/b/c/f.txt").read_text(encoding="utf-8") == "hello"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((ws.folder / "a/b").stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((ws.folder / "a/b/c/f.txt").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o644, 0o4755])
def test_writing_keeps_the_mode(ws, mode):
    (ws.folder / "f").write_text("old", encoding="utf-8")
    (ws.folder / "f").chmod(mode)
    ws.write("f", "new")
    assert (ws.folder / "f").read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE((ws.folder / "f").stat().st_mode) == mode


def test_writing_leaves_nothing_else_behind(ws):
    ws.write("f", "1")
    ws.write("f", "2")
    assert os.listdir(ws.folder) == ["f"]


@pytest.mark.parametrize(
    ("old", "sent", "written"),
    [
        (b"a\r\nb\r\n", "c\nd", b"c\r\nd"),
        (b"a\r\n", "c\r\nd\n", b"c\r\nd\n"),
        (b"a\r\nb\n", "c\n", b"c\n"),
        (b"a\nb\r\n", "c\n", b"c\n"),
        (b"a\n", "c\r\n", b"c\r\n"),
        (b"a", "c\n", b"c\n"),
        (b"", "c\n", b"c\n"),
        (b"\r\n", "\n", b"\r\n"),
        (b"a\rb\r\n", "c\n", b"c\r\n"),
        (b"\n\r\n", "c\n", b"c\n"),
        (b"x" * (1024 * 1024 - 1) + b"\r\n", "c\n", b"c\r\n"),
        (b"x" * (1024 * 1024) + b"\n\r\n", "c\n", b"c\n"),
    ],
)
def test_line_ends_follow_the_file_only_if_it_is_of_one_mind(ws, old, sent, written):
    (ws.folder / "f").write_bytes(old)
    ws.write("f", sent)
    assert (ws.folder / "f").read_bytes() == written


def test_a_link_inside_stays_a_link_and_its_target_is_written(ws):
    (ws.folder / "real").mkdir()
    (ws.folder / "real" / "f").write_text("old", encoding="utf-8")
    (ws.folder / "link").symlink_to("real/f")
    (ws.folder / "new-link").symlink_to("real/new")
    ws.write("link", "new")
    ws.write("new-link", "made")
    assert os.readlink(ws.folder / "link") == "real/f"
    assert (ws.folder / "real" / "f").read_text(encoding="utf-8") == "new"
    assert os.readlink(ws.folder / "new-link") == "real/new"
    assert (ws.folder / "real" / "new").read_text(encoding="utf-8") == "made"


def test_what_cannot_be_written_is_told(ws):
    (ws.folder / "folder").mkdir()
    (ws.folder / "file").touch()
    assert problem(ws.write, "folder", "x") == "failed to write file: Is a directory"
    assert problem(ws.write, "/", "x") == "failed to write file: Is a directory"
    assert problem(ws.write, "file/f", "x") == "failed to write file: Not a directory"


def test_the_largest_text_is_written_and_one_byte_more_is_not(ws):
    ws.write("f", "x" * WRITE_LIMIT)
    assert (ws.folder / "f").stat().st_size == WRITE_LIMIT
    told = problem(ws.write, "f", "é" * (WRITE_LIMIT // 2) + "x")
    assert told == "failed to write file: File too large (33 MiB, the limit is 32 MiB)"


def test_content_that_is_no_unicode_is_refused_before_anything_is_made(ws):
    with pytest.raises(InvalidParams, match="surrogate"):
        ws.write("new/f", "a\ud800")
    assert os.listdir(ws.folder) == []


def test_a_write_gives_the_stamp_that_the_next_read_has(ws):
    written = ws.write("f", "hello")
    assert written == ws.stamp("f") == Stamp.of((ws.folder / "f").stat())


def test_a_file_that_changed_since_it_was_read_is_left_alone(ws):
    ws.write("f", "read")
    stamp = ws.stamp("f")
    (ws.folder / "f").write_text("changed", encoding="utf-8")
    with pytest.raises(FileProblem, match=r"^failed to write file: The file changed on disk since it was read$"):
        ws.write("f", "new", expected=stamp)
    assert ws.read("f") == "changed"
    assert os.listdir(ws.folder) == ["f"]
    ws.write("f", "new", expected=ws.stamp("f"))
    assert ws.read("f") == "new"


def test_a_file_that_was_deleted_or_replaced_since_it_was_read_is_left_alone(ws):
    stamp = ws.write("f", "text")
    os.utime(ws.folder / "f", ns=(0, 0))
    (ws.folder / "g").write_text("next", encoding="utf-8")
    os.utime(ws.folder / "g", ns=(0, stamp.modified))
    os.replace(ws.folder / "g", ws.folder / "f")
    assert "changed on disk" in problem(lambda: ws.write("f", "new", expected=stamp))
    os.unlink(ws.folder / "f")
    assert "changed on disk" in problem(lambda: ws.write("f", "new", expected=stamp))
    assert os.listdir(ws.folder) == []
