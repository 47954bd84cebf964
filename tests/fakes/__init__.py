"""The programs around the bridge, played or driven for real: fakes are peers, never mocks."""
