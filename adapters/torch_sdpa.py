"""torch.nn.functional.scaled_dot_product_attention, one backend at a time: math, flash, efficient, cudnn.

Choose one with --impl=adapters.torch_sdpa:flash. Causal calls with n_q = n_k use PyTorch's flag, others an
end-aligned mask made here; --impl=adapters.torch_sdpa:lower_right takes PyTorch's own such mask,
torch.nn.attention.bias.causal_lower_right, on the backend it picks. float64 is float64 inside (math, flash on
the CPU); 16-bit inputs accumulate in float32. What a backend refuses is not offered.
"""

import warnings
from types import SimpleNamespace

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from adapters import torch_nn

REFUSALS = ("No available kernel", "No viable backend")


def only(backend, **says):
    def attention(q, k, v, *, causal=False, scale=None):
        try:
            with sdpa_kernel(backend), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # why a kernel refuses
                return torch_nn.attention(q, k, v, causal=causal, scale=scale)
        except RuntimeError as error:
            if str(error).startswith(REFUSALS):
                raise NotImplementedError(f"not offered: no {backend.name} kernel for this input") from None
            raise

    return SimpleNamespace(attention=attention, __doc__=__doc__, **says)


def with_lower_right(q, k, v, *, causal=False, scale=None):
    from torch.nn.attention.bias import causal_lower_right  # imports torch._dynamo

    mask = causal_lower_right(q.shape[-2], k.shape[-2]) if causal else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)


math = only(SDPBackend.MATH)
flash = only(SDPBackend.FLASH_ATTENTION, DEVICES=("cpu", "cuda"))
efficient = only(SDPBackend.EFFICIENT_ATTENTION, DEVICES=("cuda",), DTYPES=("float32", "bfloat16", "float16"))
cudnn = only(SDPBackend.CUDNN_ATTENTION, DEVICES=("cuda",), DTYPES=("bfloat16", "float16"))
lower_right = SimpleNamespace(attention=with_lower_right, __doc__=__doc__)
