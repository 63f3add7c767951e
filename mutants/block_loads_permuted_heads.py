"""Reorders the rows of W_q and W_k on loading, for a RoPE of adjacent pairs, and then turns half-split ones.

Hugging Face's files hold these rows in half-split order already; Meta's hold them in adjacent pairs. Where:
huggingface/transformers issue 25199. Position 0 is right, since both matrices are reordered alike.
"""

import refimpl

MUST_BREAK = ("rope.after-projection", "block.norm-sublayer-add-twice")


class Transformer(refimpl.Transformer):
    def load_state_dict(self, state_dict, strict=True, assign=False):
        return super().load_state_dict(
            {n: self.reordered(n, w) for n, w in state_dict.items()}, strict, assign
        )

    def reordered(self, name, w):
        """Row j of a head's first half to row 2j, row j of its second half to row 2j + 1."""
        if "q_proj" not in name and "k_proj" not in name:
            return w
        halves = w.unflatten(0, (-1, 2, self.config.d_head // 2))  # (n_heads, 2, d_head / 2, d_model)
        return halves.transpose(1, 2).flatten(0, 2)
