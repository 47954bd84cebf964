"""JSON-RPC 2.0 over anything: framing and peer are pure, connection and dispatch run them."""
