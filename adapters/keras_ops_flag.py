"""Keras' own idea of causal: keras.ops.dot_product_attention(is_causal=True), whatever the lengths.

attention: the flag is Keras' and the mask behind it PyTorch's, aligned at the first key, so that a query over
a cache sees the wrong keys: a convention that Keras' documentation leaves open. keras_ops translates;
precision and limits are as there.
"""

from adapters.keras_ops import DEVICES, DTYPES, run  # noqa: F401
from adapters.known import START_ALIGNED, breaks

REASON = "is_causal is aligned at the first key, as PyTorch's is (pytorch/pytorch #108108)"
KNOWN_BREAKS = breaks("convention", REASON, *START_ALIGNED)


def attention(q, k, v, *, causal=False, scale=None):
    return run(q, k, v, is_causal=causal, scale=scale)
