"""Attacks by files, requests and agents of strangers, as this user and as an ordinary one."""

import sys

import pytest

from tests.trials.attacks import ATTACKS, COMMON
from tests.trials.helpers import say
from tests.trials.ordinary import as_any_user, run_as

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="measures as Linux does")]


@as_any_user
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_fails(tmp_path, attack, user):
    done = run_as(user, ["-c", COMMON + ATTACKS[attack]], tmp_path)
    say(attack, done.stdout[-500:])
    assert "the attack succeeds" not in done.stdout
    assert done.returncode == 0, done.stderr[-3000:]
