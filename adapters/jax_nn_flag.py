"""JAX's own idea of causal: jax.nn.dot_product_attention(is_causal=True), whatever the lengths.

attention: the flag and the mask behind it are JAX's. It is aligned at the first key, so that a query over a
cache sees the wrong keys: a convention that its documentation leaves open. jax_nn translates; precision and
limits are as there.
"""

from adapters import jax_nn
from adapters.jax_nn import DEVICES, DTYPES  # noqa: F401
from adapters.known import START_ALIGNED, breaks

REASON = "is_causal is aligned at the first key (jax.nn.dot_product_attention leaves it open)"
KNOWN_BREAKS = breaks("convention", REASON, *START_ALIGNED)


def attention(q, k, v, *, causal=False, scale=None):
    return jax_nn.attention(q, k, v, flag=causal, scale=scale)
