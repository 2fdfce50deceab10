#!/usr/bin/env python
"""Sidestream's command line. `python manage.py up` starts everything; `python manage.py help` lists the rest."""

# Nothing here may need a newer Python than 3.8 to parse, nor a package to import: this file is what
# says that the Python is too old, or that the requirements are missing.
import os
import sys

NEEDED = (3, 11)
INSTALL = "python3 -m venv .venv && .venv/bin/pip install --no-deps -r requirements.txt"
OURS = ("chatapp", "streaming", "e2e")


def refuse(sentence):
    """End with exit code 2 and one sentence."""
    sys.stderr.write(sentence + "\n")
    raise SystemExit(2)


def main(needed=NEEDED):
    if sys.version_info < needed:
        refuse(
            f"Sidestream needs Python {needed[0]}.{needed[1]} or newer, and {sys.executable} is "
            f"{sys.version_info[0]}.{sys.version_info[1]}. Make the virtual environment with a newer one."
        )
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
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


if __name__ == "__main__":
    main()
