"""Write what works with every model type into docs/models.md: `python docs/models.py`."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headscope.families.run import check_all, families
from headscope.families.table import as_markdown, counts

PAGE = Path(__file__).with_name("models.md")

if __name__ == "__main__":
    wanted = families()
    with ThreadPoolExecutor(2) as pool:
        halves = pool.map(lambda some: list(check_all(some)), (wanted[::2], wanted[1::2]))
    found = [one for half in halves for one in half]
    PAGE.write_text(as_markdown(found), encoding="utf-8")
    for name, number in counts(found).items():
        print(number, name)
