"""What every editor must do, as checks that run against any of them."""
