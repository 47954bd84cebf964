import os
import stat

import pytest

from ide_bridge.editor.parcels import WORTH_BYTES, Parcels
from ide_bridge.errors import InvalidParams
from tests.fakes.surroundings import at_home


@pytest.fixture
def parcels():
    with at_home():
        parcels = Parcels()
        yield parcels
        parcels.close()


def test_only_what_is_large_is_worth_a_parcel(parcels):
    assert not parcels.worth("x" * WORTH_BYTES)
    assert parcels.worth("x" * (WORTH_BYTES + 1))


def test_a_parcel_is_private_and_holds_the_text_as_it_is(parcels):
    path = parcels.pack(7, "ä\r\nb")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, "rb") as file:
        assert file.read() == "ä\r\nb".encode()


def test_a_parcel_goes_with_its_diff(parcels):
    one, other = parcels.pack(1, "one"), parcels.pack(2, "other")
    parcels.discard(1)
    parcels.discard(1)
    assert (os.path.exists(one), os.path.exists(other)) == (False, True)
    parcels.close()
    assert not os.path.exists(os.path.dirname(other))


def test_a_received_text_is_taken_away(parcels, tmp_path):
    (tmp_path / "it").write_bytes("ü\n".encode())
    assert parcels.receive(str(tmp_path / "it")) == "ü\n"
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize("make", ["missing", "folder", "link", "binary"])
def test_what_is_no_plain_text_file_is_refused(parcels, tmp_path, make):
    path = tmp_path / "it"
    if make == "folder":
        path.mkdir()
    elif make == "link":
        path.symlink_to("/etc/hostname")
    elif make == "binary":
        path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidParams, match="cannot be read"):
        parcels.receive(str(path))
