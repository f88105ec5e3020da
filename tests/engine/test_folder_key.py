from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.folder_key import KEY_FILE, FolderKey, NameUse, Spot, open_folder_key
from tollkeeper.engine.journal.contract import JournalError

KEY = FolderKey(bytes(32))
named = st.sampled_from(NameUse)
accounts = st.integers(0, 2**32 - 1)
texts = st.text(st.characters(codec="utf-8"))
spots = st.builds(Spot, st.integers(0, 2**63 - 1), st.integers(0, 2**16 - 1))


@given(named, accounts, spots)
def test_a_name_is_read_back_by_its_own_account_for_its_own_use_alone(what, account, spot):
    name = KEY.name_of(what, account, spot)
    assert KEY.spot_of(what, account, name) == spot
    assert all(KEY.spot_of(other, account, name) is None for other in {*NameUse} - {what})
    assert KEY.spot_of(what, account ^ 1, name) is None
    assert FolderKey(b"x" * 32).spot_of(what, account, name) is None


@given(named, accounts, st.integers(0, 2**63 - 2))
def test_names_of_neighbours_have_nothing_in_common(what, account, sequence):
    one, two = (
        int(KEY.name_of(what, account, Spot(each)), 16) for each in (sequence, sequence + 1)
    )
    assert 20 < (one ^ two).bit_count() < 108


@given(st.text(max_size=80) | st.binary(min_size=16, max_size=16).map(bytes.hex))
def test_what_was_never_given_is_no_name(text):
    assert KEY.spot_of(NameUse.CURSOR, 1, text) is None


@given(texts, texts, texts)
def test_a_secret_is_opened_for_its_owner_alone(secret, owner, other):
    sealed = KEY.seal(secret, owner)
    assert KEY.unseal(sealed, owner) == secret
    assert (KEY.unseal(sealed, other) is None) == (owner != other)
    assert FolderKey(b"x" * 32).unseal(sealed, owner) is None
    assert KEY.unseal(sealed[:-1], owner) is None
    assert len(secret) < 8 or secret.encode() not in sealed


def test_a_folder_gets_a_key_once_that_only_its_owner_reads(tmp_path):
    made = open_folder_key(tmp_path)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert open_folder_key(tmp_path).unseal(made.seal("a secret", "shop"), "shop") == "a secret"
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_a_file_that_is_no_key_is_refused_with_what_to_do(tmp_path):
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(JournalError, match="put the right one there, or remove it"):
        open_folder_key(tmp_path)
