"""A state with answers in it, and a backup of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.chatapp.backup.doing import (
    manage,
    write,
)
from tests.chatapp.test_up_command import environment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Path]:
    """A state folder, the answers in it, and a backup of it."""
    folder = tmp_path_factory.mktemp("made")
    env = environment(folder / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    manage(env, "migrate", "--verbosity", "0")
    answers = write(env, 3)
    manage(env, "backup", str(folder / "backup.zip"))
    return folder / "var", answers, folder / "backup.zip"


@pytest.fixture
def var(made: tuple[Path, list[str], Path], tmp_path: Path) -> Path:
    """A state folder of the test's own, with the answers of `made`."""
    return Path(shutil.copytree(made[0], tmp_path / "var"))


@pytest.fixture
def env(var: Path) -> dict[str, str]:
    return environment(var, SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")


@pytest.fixture
def backup(made: tuple[Path, list[str], Path]) -> Path:
    return made[2]
