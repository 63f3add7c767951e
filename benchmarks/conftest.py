"""Who is timed where, for calls that judge nothing: `timed` is an offered name on a device in a dtype."""

import itertools

import pytest

from harness.claims import NAMES, Claim
from harness.gather import SETUP
from harness.load import DTYPES


def pytest_generate_tests(metafunc):
    if "timed" in metafunc.fixturenames:
        run = metafunc.config.stash[SETUP]
        found = [
            pytest.param(
                (name, impl.offers[name], device, DTYPES[dtype]), id=f"{name}-{impl.label}-{device}-{dtype}"
            )
            for name, impl, device, dtype in itertools.product(NAMES, run.impls, run.devices, run.dtypes)
            if not impl.refuses(a_call_of(name), device, dtype)
        ]
        metafunc.parametrize("timed", found)


def a_call_of(name):
    """The claim that needs this name and nothing else."""
    return Claim(id=name, statement="", source="", needs=(name,))
