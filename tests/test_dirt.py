import threading

from ide_bridge.workspace.dirt import Dirt, Suspects


def dirty():
    woken = []
    return Dirt(lambda: woken.append(threading.current_thread())), woken


def test_it_begins_clean_and_wakes_when_it_stops_being_so():
    dirt, woken = dirty()
    assert not dirt
    dirt.folder("a/")
    dirt.folder("b/")
    dirt.index()
    assert dirt
    assert len(woken) == 1


def test_what_was_collected_is_handed_over_once():
    dirt, woken = dirty()
    dirt.folder("a/")
    dirt.replaced("b/")
    dirt.written("c")
    dirt.index()
    dirt.everything()
    assert dirt.take() == Suspects({"a/"}, {"b/"}, {"c": None}, index=True, everything=True)
    assert not dirt
    assert dirt.take() == Suspects()
    dirt.everything()
    assert len(woken) == 2


def test_files_are_kept_in_the_order_of_their_last_writing():
    dirt, _ = dirty()
    for path in "abcab":
        dirt.written(path)
    assert list(dirt.take().written) == ["c", "a", "b"]


def test_nothing_is_lost_between_many_threads():
    dirt, woken = dirty()
    taken = set()
    ended = threading.Event()

    def soil(name):
        for number in range(2000):
            dirt.folder(f"{name}{number}")

    def clean():
        while not ended.is_set():
            taken.update(dirt.take().folders)

    cleaner = threading.Thread(target=clean)
    soilers = [threading.Thread(target=soil, args=(name,)) for name in "abcd"]
    for thread in (cleaner, *soilers):
        thread.start()
    for thread in soilers:
        thread.join()
    ended.set()
    cleaner.join()
    assert len(taken | dirt.take().folders) == 8000
    assert woken
