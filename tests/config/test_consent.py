"""Records and config files from elsewhere are data: what they may do is on the command line."""

from __future__ import annotations

import pytest

from runner.config.consent import Consent
from runner.config.objects import ConfigError


@pytest.mark.parametrize(
    ("trust", "message"),
    [
        ("files", r"^trust=\"files\": should be a list; write 'trust=\[files\]'$"),
        (["file"], r"^trust=\[file\]: no such kind of trust; choose plugins, services, models, files or secrets$"),
        ([1], r"^trust=\[1\]: no such kind of trust"),
    ],
)
def test_trust_is_a_list_of_known_words(trust: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Consent.of({"trust": trust})
    assert Consent.of({"trust": ["files"], "plugins": ["mine"]}) == Consent(("files",), ("mine",))
