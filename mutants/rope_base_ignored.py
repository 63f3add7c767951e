"""Turns at the rates of base 10,000, whatever base is given.

Where: sgl-project/SpecForge 265; lyogavin/airllm PR 369; Lightning-AI/litgpt 2217. Short prompts look fine.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.base-sets-the-slowest", "context.ntk-base")


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions, x.shape[-1], 10000.0))
