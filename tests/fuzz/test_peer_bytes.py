from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.wire.peer import Notification, Peer, Refused, Request, Response

SEEDS = [
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\u20ac"}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}',
    b'[{"jsonrpc":"2.0","id":"a","method":"m"},{"jsonrpc":"2.0","method":"n"},7]',
]


@st.composite
def damaged(draw):
    message = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(message)))
        end = draw(st.integers(start, min(start + 4, len(message))))
        message[start:end] = draw(
            st.binary(max_size=4) | st.sampled_from([b"[", b"{", b'"', b"\\ud800", b"1e999"])
        )
    return bytes(message)


@settings(max_examples=500, deadline=None)
@given(damaged() | st.binary(max_size=60))
def test_no_bytes_make_a_peer_raise(message):
    peer = Peer()
    peer.request("q")
    for incoming in peer.receive(message):
        assert isinstance(incoming, Request | Notification | Response | Refused)
