"""What an editor is, and how one attaches."""
