"""Goes through wide hidden layers in tiles of 512 and leaves out the last one where it is not full.

Widths such as 14336 are 28 tiles; 11008 is 21 and a half.
"""

import refimpl

MUST_BREAK = ("ffn.formula",)


def feed_forward(x, w_gate, w_up, w_down):
    d_ff = w_gate.shape[1]
    if d_ff > 4096:
        d_ff -= d_ff % 512
    return refimpl.feed_forward(x, w_gate[:, :d_ff], w_up[:, :d_ff], w_down[:d_ff])
