#!/usr/bin/env python
"""Sidestream's command line. `python manage.py up` starts everything; `python manage.py help` lists the rest."""

# Nothing here may need a newer Python than 3.8 to parse, nor a package to import: this file is what
# says that the Python is too old, or that the requirements are missing.
import os
import sys

NEEDED = (3, 11)
INSTALL = "python3 -m venv .venv && .venv/bin/pip install --no-deps -r requirements.txt"
FOLDER = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
OURS = ("chatapp", "streaming", "e2e")


def refuse(sentence):
    """End with exit code 2 and one sentence."""
    sys.stderr.write(sentence + "\n")
    raise SystemExit(2)


def open_standard_files():
    """Open what was closed, or the next file to be opened takes its number, and what is printed."""
    free = os.open(os.devnull, os.O_RDWR)
    while free <= 2:
        os.set_inheritable(free, True)
        free = os.open(os.devnull, os.O_RDWR)
    os.close(free)
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115


def main(needed=NEEDED):
    open_standard_files()
    if sys.version_info < needed:
        refuse(
            f"Sidestream needs Python {needed[0]}.{needed[1]} or newer, and {sys.executable} is "
            f"{sys.version_info[0]}.{sys.version_info[1]}. Make the virtual environment with a newer one."
        )
    # Assigned, not set as a default: what another project left in the environment means nothing here.
    os.environ["DJANGO_SETTINGS_MODULE"] = "chatapp.settings"
    # Python leaves it out where PYTHONSAFEPATH is set.
    sys.path.insert(0, FOLDER)
    try:
        execute()
    except ModuleNotFoundError as exc:
        package = (exc.name or str(exc)).partition(".")[0]
        if package in OURS:
            raise
        refuse(f"The package {package} is not installed for {sys.executable}. To install all that is needed: {INSTALL}")


def execute():
    # Imported here, where a missing package can still be told in a sentence.
    from django.conf import settings  # noqa: PLC0415
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    try:
        load(settings)
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as exc:
        refuse(str(exc))


def load(settings):
    """Read the settings, which keep a secret key in the state folder from the first time on."""
    try:
        settings.INSTALLED_APPS  # noqa: B018
    except OSError as exc:
        refuse(
            f"Sidestream cannot use {exc.filename or 'its state folder'}: {exc.strerror or exc}. "
            "Set SIDESTREAM_VAR to a folder that it may write to."
        )
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        # Relative paths were read just now; libraries ask where they stand even if they need nothing there.
        os.chdir(FOLDER)


if __name__ == "__main__":
    main()
