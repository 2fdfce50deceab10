"""`manage.py up` reads the catalogue before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatapp.up.grounds import check_models
from chatapp.up.refusal import Refused


def test_all_mistakes_in_the_catalogue_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[[models]]\nid = "m"\nlabel = "M"\nadapter = "openai"\nmodel = "gpt"\nlable = "x"\n')
    with pytest.raises(Refused) as refusal:
        check_models(path)
    told = str(refusal.value)
    assert "MODELS_FILE" in told
    assert [word for word in ("line 4: adapter", "line 6: lable") if word not in told] == []


def test_a_catalogue_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        check_models(tmp_path / "none.toml")


def test_the_shipped_catalogue_is_in_nobody_s_way() -> None:
    check_models(Path(__file__).parents[2] / "chatapp" / "models.toml")
