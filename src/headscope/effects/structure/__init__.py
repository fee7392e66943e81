"""What people have annotated in texts, and how well each head finds it."""
