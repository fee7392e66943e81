"""`python -m headscope`, where the command itself is not on the path."""

from headscope.cli import main

if __name__ == "__main__":
    main()
