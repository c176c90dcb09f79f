"""What a recorder is asked to do: a setting that is missing or unknown is said, not met."""

from __future__ import annotations

import pytest

from zombiescope.recorder import config


@pytest.mark.parametrize("text", ["{}", '{"hz": 99}', '{"dir": "/x", "colour": 1}', "[]", "8", "{", '["dir"]'])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        config.parse(text)


def test_a_configuration() -> None:
    assert config.parse('{"dir": "/x"}').dir == "/x"
