"""What every backend borrows: threads, compiled code, results under way, memory for transfers."""
