"""Who is timed where, for calls that judge nothing: `timed` is an offered name on a device in a dtype."""

import itertools

import pytest

from harness.claims import NAMES
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
            if name in impl.offers
            and (not impl.devices or device in impl.devices)
            and (not impl.dtypes or dtype in impl.dtypes)
            and (device, dtype) != ("mps", "float64")
        ]  # fmt: skip
        metafunc.parametrize("timed", found)
