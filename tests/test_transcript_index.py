"""How much of a file is read, and when it is taken for another one."""

from ide_bridge.session.transcript.index import Index
from tests.transcripts import Writer


def test_only_the_end_of_a_large_file_is_read_until_more_is_asked_for(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    first = writer.prompt("first")
    for _ in range(500):
        writer.snapshot()
    index = Index(str(writer.path), side=False)
    with index.opened():
        index.begin()
        known = -index.tree.first
        assert 0 < known < 100
        index.begin()
        assert -index.tree.first == known
        assert index.find(first) is not None
        assert -index.tree.first == 501
        assert not index.back_up()


def test_a_parent_far_back_is_found(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    root = writer.prompt("root")
    for _ in range(200):
        writer.snapshot()
    writer.prompt("from the root", parentUuid=root)
    index = Index(str(writer.path), side=False)
    with index.opened():
        index.begin()
        assert index.tree.newest is not None
        parent = index.parent(index.tree.newest)
        assert parent is not None
        assert index.tree[parent].uuid == root
        assert not index.is_gap(index.tree.newest, parent)
        assert index.parent(parent) is None


def test_what_is_added_is_taken_in_by_pieces(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    index = Index(str(writer.path), side=False)
    with index.opened():
        assert index.read_on(1_000) == []
    for _ in range(5):
        writer.snapshot()
    taken = []
    for _ in range(6):
        with index.opened():
            taken.append(len(index.read_on(1_000)))
    assert taken == [1, 1, 1, 1, 1, 0]
    assert not index.anew


def test_another_file_is_noticed_once(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    writer.prompt("old")
    index = Index(str(writer.path), side=False)
    with index.opened():
        index.begin()
    writer.path.unlink()
    with index.opened():
        assert index.anew
        assert index.tree.newest is None
        index.anew = False
    writer.prompt("new")
    with index.opened():
        index.begin()
        assert not index.anew
        assert index.tree.newest == -1


def test_records_of_a_sub_agent_count_in_its_own_file_only(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    writer.prompt("sub", isSidechain=True)
    for side, newest in ((False, None), (True, -1)):
        index = Index(str(writer.path), side=side)
        with index.opened():
            index.begin()
            assert index.tree.newest == newest
