"""Each head's queries, keys and values read only that head's slice of the input.

Parameters and shapes are right. The misreading that the refresher's section 4 heads off.
"""

import torch

import refimpl

MUST_BREAK = ("heads.slice-only-q-k-v",)
SPREADS = ("block", "contract", "gqa", "rope", "training")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        d, w = x.shape[-1], layer["self_attn"]
        with torch.no_grad():
            for name in ("q_proj", "k_proj", "v_proj"):
                rows = w[name].weight
                n = rows.shape[0]
                own = torch.arange(n, device=x.device) * d // n // 8
                rows.mul_((own[:, None] == torch.arange(d, device=x.device) // 8).to(rows.dtype))
        return super().attend(layer, x, positions, cache, i)
