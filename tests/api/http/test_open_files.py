"""A service may open as many files as the system lets it, however few its shell does."""

from __future__ import annotations

import resource

from tollkeeper.api.http.serve import allow_open_files


def test_the_limit_of_open_files_is_raised_as_far_as_it_goes() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    least, most = 256, before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))
    try:
        allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
