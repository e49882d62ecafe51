"""Operators of these tests have the rights that placement needs."""

from __future__ import annotations

import pytest

from tests.chart import Account


@pytest.fixture
def account(placing_account: Account) -> Account:
    return placing_account
