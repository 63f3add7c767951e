"""ONNX Runtime's standard operators, on its CPU provider, one to a session.

attention: Attention-24; its causal mask is the operator's, aligned at the end because all keys but the last
n_q come in as past_key. rope: RotaryEmbedding-23, with float64 angles made here, in tables of x's dtype.
rms_norm: RMSNormalization-23. feed_forward: Swish-24 between two MatMul each, composed here. Attributes are
float32, and RotaryEmbedding has no float64, so that float64 is not declared.
"""

import onnxruntime

from adapters.onnx_reference import DEVICES, DTYPES, GRADIENTS, functions

__all__ = ["DEVICES", "DTYPES", "GRADIENTS", "attention", "feed_forward", "rms_norm", "rope"]


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


call, attention, rope, rms_norm, feed_forward = functions(session)
