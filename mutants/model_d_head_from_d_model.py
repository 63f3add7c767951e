"""Takes d_head as d_model / n_heads, whatever the config says, and fits loaded weights to that.

Right for Llama. Seen: allenai/OLMo-core 533; huggingface/candle 2358 (Mistral-Nemo).
"""

import refimpl

MUST_BREAK = ("heads.width-is-free",)
SPREADS = ("block", "bytes", "context", "cost", "gqa", "rope", "serving")


def fitted(w, own):
    """w's numbers where own has room for them, and zeros beyond."""
    out = own.detach().clone().zero_()
    common = tuple(slice(min(a, b)) for a, b in zip(w.shape, own.shape, strict=True))
    out[common] = w[common]
    return out


class Transformer(refimpl.Transformer):
    def __init__(self, config, **options):
        super().__init__(config.but(d_head=max(2, config.d_model // config.n_heads // 2 * 2)), **options)

    def load_state_dict(self, weights):
        own = self.state_dict()
        return super().load_state_dict({name: fitted(w, own[name]) for name, w in weights.items()})
