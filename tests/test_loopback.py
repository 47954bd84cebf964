"""What is started reaches this machine directly, whatever proxies there are."""

from ide_bridge.loopback import past_proxies


def test_loopback_joins_the_hosts_that_are_exempt_already_and_only_once():
    changed = past_proxies({"no_proxy": " example.org ,localhost,", "A": "b"})
    assert changed == {
        "no_proxy": "example.org,localhost,127.0.0.1,::1",
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "A": "b",
    }
