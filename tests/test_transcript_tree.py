from ide_bridge.session.transcript.records import Head
from ide_bridge.session.transcript.tree import Kind, Node, Tree, node_of


def node(uuid: str, parent: str | None = None, place: int = 0, kind: Kind = Kind.PROMPT) -> Node:
    return Node(uuid, parent, place, 1, kind)


def test_bookkeeping_is_no_part_of_the_tree():
    assert node_of(Head(type="last-prompt"), 0, 1) is None
    assert node_of(Head(type="user", uuid=5), 0, 1) is None


def test_the_logical_parent_counts_where_there_is_no_other():
    for head, parent in [
        (Head(uuid="a", parentUuid="b", logicalParentUuid="c"), "b"),
        (Head(uuid="a", logicalParentUuid="c"), "c"),
        (Head(uuid="a", parentUuid=5, logicalParentUuid=[]), None),
    ]:
        found = node_of(head, 0, 1)
        assert found is not None
        assert found.parent == parent


def test_what_a_record_is_to_the_tree():
    for head, kind in [
        (Head(uuid="a", type="assistant"), Kind.ANSWER),
        (Head(uuid="a", type="user"), Kind.PROMPT),
        (Head(uuid="a", type="user", isMeta=True), Kind.OTHER),
        (Head(uuid="a", type="user", sourceToolAssistantUUID="b"), Kind.RESULT),
        (Head(uuid="a", type="attachment"), Kind.OTHER),
    ]:
        found = node_of(head, 0, 1)
        assert found is not None
        assert found.kind == kind


def test_records_are_numbered_in_the_order_of_the_file_from_both_ends():
    tree = Tree()
    assert tree.newest is None
    tree.prepend(node("b", place=10))
    assert tree.newest == -1
    tree.append(node("c", place=20))
    tree.prepend(node("a", place=0))
    assert [tree[number].uuid for number in range(tree.first, (tree.newest or 0) + 1)] == ["a", "b", "c"]
    assert [tree.at(place) for place in (0, 10, 20)] == [-2, -1, 0]
    assert [tree.at(place) for place in (-1, 5, 30)] == [None, None, None]


def test_of_several_records_with_one_uuid_the_nearest_earlier_one_is_meant():
    tree = Tree()
    for place in (50, 30, 10):
        tree.prepend(node("a", place=place))
    tree.append(node("a", place=60))
    tree.append(node("a", place=70))
    assert tree.find("a") == 1
    assert [tree.find("a", before=number) for number in (1, 0, -1, -2, -3)] == [0, -1, -2, -3, None]
    assert tree.find("b") is None


def test_company_is_of_the_same_answer_or_a_result_of_it():
    tree = Tree()
    for each in [
        node("prompt"),
        node("one", "prompt", kind=Kind.ANSWER),
        node("two", "one", kind=Kind.ANSWER),
        node("other", "one", kind=Kind.ANSWER),
        node("two result", "two", kind=Kind.RESULT),
        node("other result", "other", kind=Kind.RESULT),
        node("stray prompt", "one"),
        node("stray answer", "stray prompt", kind=Kind.ANSWER),
        node("one result", "one", kind=Kind.RESULT),
    ]:
        tree.append(each)
    way = [8, 1, 0]
    found = tree.company(way, lambda number, _: tree[number].uuid == "two")
    assert [tree[number].uuid for number in found] == ["two", "two result"]
    assert tree.company([], lambda *_: True) == []
