"""The command: a row for each place, and exit code 1 if any fails."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.chatapp.starting import ROOT
from tests.places.place import PLACES, Place, Skipped, Stay


def main() -> int:
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="places-") as folder:
        base = Path(folder)
        base.chmod(0o755)  # Another user is to get at a clone of theirs.
        python = _fresh_venv(base, chosen.python) if chosen.fresh_venv else chosen.python
        places = [place for place in PLACES if not chosen.only or place.name in chosen.only]
        outcomes = [_row(place, base / f"place-{number}", python) for number, place in enumerate(places)]
    return 0 if all(outcomes) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.places", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="what runs the clones (default: this one)")
    parser.add_argument("--fresh-venv", action="store_true", help="install the requirements anew, for that Python")
    parser.add_argument("--only", action="append", choices=[place.name for place in PLACES], metavar="PLACE")
    return parser.parse_args()


def _row(place: Place, base: Path, python: str) -> bool:
    began = time.monotonic()
    outcome = _visited(Stay(place, base, python))
    print(f"{place.name:20} {time.monotonic() - began:6.1f} s  {outcome}", flush=True)
    return not outcome.startswith("FAILED")


def _visited(stay: Stay) -> str:
    try:
        stay.settle()
        stay.place.visit(stay)
    except Skipped as exc:
        return f"skipped: {exc}"
    except Exception as exc:
        return f"FAILED: {type(exc).__name__}: {exc}"
    finally:
        stay.leave()
    return "holds"


def _fresh_venv(base: Path, python: str) -> str:
    began = time.monotonic()
    subprocess.run([python, "-m", "venv", str(base / "venv")], check=True)
    own = str(base / "venv" / "bin" / "python")
    install = [own, "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(ROOT / "requirements.txt")]
    subprocess.run(install, check=True)
    print(f"{'requirements':20} {time.monotonic() - began:6.1f} s  installed")
    return own


if __name__ == "__main__":
    sys.exit(main())
