"""From a Hugging Face config.json, or a published model's name, to Sizes.

Only numbers and names are read: nothing is downloaded, and code that a config points to ("auto_map") never
runs. What a family's own reader fills in where a config leaves a field out is filled in here too.
"""

import difflib
import json
import os.path
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.load import Unusable
from harness.sizes import Experts, Latent, Sizes

DATA = Path(__file__).with_name("published.json")

# Far beyond any model, and small enough that a slip of the keyboard is told from a size.
MOST = 2**24
MOST_LAYERS, MOST_EXPERTS = 4096, 2**16

# Fields by Hugging Face's usual name, and the names that older families have for them.
ALIASES = {
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "intermediate_size": ("n_inner", "ffn_hidden_size"),
    "num_local_experts": ("num_experts", "n_routed_experts"),
}

# What each family takes for a field that its config leaves out. n_kv_heads is n_heads elsewhere.
GEMMA = {"tie_word_embeddings": True, "head_dim": 256}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": {},
    "qwen2_moe": {},
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"num_key_value_heads": 4},
    "gemma": GEMMA | {"num_key_value_heads": 16},
    "gemma2": GEMMA | {"num_key_value_heads": 4, "sliding_window": 4096},
    "gemma3_text": GEMMA
    | {"num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 4096, "vocab_size": 262208},
    "phi": {},
    "phi3": {},
    "gpt2": {"tie_word_embeddings": True, "n_positions": 1024},
    "falcon": {"tie_word_embeddings": True},
    "mpt": {"tie_word_embeddings": True},
    "bloom": {"tie_word_embeddings": True},
    "gpt_neox": {"attention_bias": True},
    "olmo": {},
    "olmo2": {},
    "stablelm": {},
    "deepseek_v2": {},
    "deepseek_v3": {},
    "gpt_oss": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128, "attention_bias": True},
    "smollm3": {"tie_word_embeddings": True, "num_key_value_heads": 4},
}

# Text models that go by the name of a larger one, or by another.
SAME_TEXT_MODEL = {
    "gemma3": "gemma3_text", "qwen2_vl": "qwen2", "qwen2_vl_text": "qwen2", "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe",
}  # fmt: skip

# Signs that a model of an unknown type is no Llama, however its other fields are called.
FOREIGN = (
    "num_local_experts", "num_experts", "n_routed_experts", "moe_intermediate_size", "kv_lora_rank",
    "is_encoder_decoder", "num_decoder_layers", "decoder_layers", "encoder_layers", "type_vocab_size",
    "state_size", "mamba_d_state", "ssm_cfg", "conv_kernel", "linear_num_key_heads", "attention_hidden_size",
    "hybrid_override_pattern", "block_types", "attn_layer_period", "multi_query", "use_qk_norm", "qk_norm",
    "qk_layernorm", "use_parallel_residual", "parallel_attn", "num_kv_shared_layers", "layer_norm_eps",
    "layer_norm_epsilon", "norm_epsilon", "bias", "use_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias",
    "add_bias_linear", "attention_out_bias",
)  # fmt: skip


class Fields:
    """A config's fields, each checked where it is read. Errors name the field and what was expected."""

    def __init__(self, where: str, values: dict[str, Any], defaults: dict[str, Any]) -> None:
        self.where, self.values, self.defaults = where, values, defaults

    def named(self, name: str) -> str:
        """The name under which the config has a field."""
        return next((n for n in (name, *ALIASES.get(name, ())) if n in self.values), name)

    def get(self, name: str) -> Any:
        found = self.named(name)
        return self.values[found] if found in self.values else self.defaults.get(name)

    def wrong(self, name: str, expected: str) -> Unusable:
        named = self.named(name)
        said = f"is {shorten(self.values[named])}" if named in self.values else "is missing"
        return Unusable(f"{self.where}: {named} {said}; expected {expected}")

    def size(self, name: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """An integer from least to most; without a default it has to be there."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"an integer from {least} to {most:,}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def one_of(self, name: str, default: Any, *allowed: Any) -> Any:
        value = self.get(name)
        value = default if value is None else value
        if value not in allowed:
            raise self.wrong(name, " or ".join(map(repr, allowed)))
        return value

    def refuse(self, *names: str) -> None:
        """Fields that would add tensors of a kind not covered."""
        for name in names:
            if self.get(name):
                raise self.wrong(name, "it to be absent or off: what it adds is not covered")


def shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- where a config comes from ---------------------------------------------------------------------------


def published() -> dict[str, dict[str, Any]]:
    """The collection: by name, a trimmed config and the exact counts."""
    found: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["models"]
    return found


def read(spec: str) -> Sizes:
    """Sizes of the config at a path, or of a published model by name. Raises Unusable with one line."""
    known = published()
    if spec in known:
        return from_dict(known[spec]["config"], spec, f"--config={spec}")
    path, where = Path(spec), f"--config={spec}"
    if os.path.isdir(path):
        raise Unusable(f"{where} is a folder; give the config.json in it")
    if not os.path.isfile(path):  # where Path.is_file raises, for a name too long, this says no
        near = difflib.get_close_matches(spec.lower(), known, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else f", such as {', '.join(list(known)[9:12])}"
        raise Unusable(f"{where}: no such file; give a config.json or a published model's name{hint}")
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Unusable(f"{where}: {error.strerror}; give a config.json that can be read") from None
    except (ValueError, RecursionError) as error:
        raise Unusable(
            f"{where}: not JSON ({str(error)[:80]}); expected a Hugging Face config.json"
        ) from None
    if not isinstance(values, dict):
        raise Unusable(f"{where}: a JSON {type(values).__name__}; expected an object, as in a config.json")
    folder = path.absolute().parent.name if path.stem == "config" else path.stem
    given = str(values.get("_name_or_path") or folder).rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", given)[:60].strip("-")
    return from_dict(values, name or "config", where)


def from_dict(values: dict[str, Any], name: str, where: str) -> Sizes:
    """Sizes of a config's fields. Raises Unusable, naming the field and what was expected."""
    notes = []
    if values.get("auto_map"):
        notes.append("auto_map is ignored: no code that a config points to runs")
    if "text_config" in values:
        if not isinstance(values["text_config"], dict):
            raise Fields(where, values, {}).wrong("text_config", "an object")
        notes.append("the text model only, from text_config")
        outer = {k: v for k, v in values.items() if k in ("tie_word_embeddings", "model_type")}
        values = outer | values["text_config"]
        where += " (text_config)"
    elif "vision_config" in values:
        notes.append("the text model only")
    kind = values.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise Fields(where, values, {}).wrong("model_type", "a family's name, such as 'llama'")
    kind = SAME_TEXT_MODEL.get(kind or "", kind or "")
    fields = Fields(where, values, FAMILIES.get(kind, {}))
    if kind not in FAMILIES:
        llama_shaped(fields, kind)
        notes.append(
            f"model_type {kind or 'not given'}: read as Llama-shaped, for want of a reader of its own"
        )
        if fields.get("sliding_window") and fields.get("layer_types") is None:
            notes.append("sliding_window is left out: nothing says which layers have one")
    if fields.get("num_nextn_predict_layers"):
        notes.append("without its module for predicting several tokens")
    return replace(architecture(fields, kind, name), notes=tuple(notes))


def llama_shaped(fields: Fields, kind: str) -> None:
    """Whether a model of an unknown type can be read as a Llama: its fields, and no others that count."""
    what = f"{fields.where}: model_type {kind!r} is unknown, and not Llama-shaped"
    for name in FOREIGN:
        if fields.values.get(name):
            known = ", ".join(FAMILIES)
            raise Unusable(f"{what}: it has {name}; expected one of {known}, or a Llama's fields alone")
    for name in (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
    ):
        if fields.get(name) is None:
            raise Unusable(f"{what}: {name} is missing; expected an integer from 1 to {MOST:,}")
    if fields.get("hidden_act") not in (None, "silu", "swish"):
        raise Unusable(f"{what}: hidden_act is {shorten(fields.get('hidden_act'))}; expected 'silu'")


# --- what the fields mean --------------------------------------------------------------------------------


def architecture(f: Fields, kind: str, name: str) -> Sizes:
    """The sizes that all families have, and then the family's own."""
    d_model = f.size("hidden_size")
    n_layers = f.size("num_hidden_layers", most=MOST_LAYERS)
    n_heads = f.size("num_attention_heads")
    n_kv_heads = kv_heads(f, kind, n_heads)
    if n_heads % n_kv_heads:
        field = "num_kv_heads" if kind == "falcon" else "num_key_value_heads"
        raise f.wrong(field, f"a divisor of {f.named('num_attention_heads')}, {n_heads}")
    latent = latents(f) if kind.startswith("deepseek_v") else None
    d_head = latent.d_nope + latent.d_rope if latent else head_width(f, kind, d_model, n_heads)
    experts, sparse = routed(f, kind, n_layers)
    wide = 4 * d_model if kind in ("gpt2", "falcon", "bloom", "mpt") else None
    made = Sizes(
        name=name, model_type=kind, n_vocab=f.size("vocab_size"), d_model=d_model, n_layers=n_layers,
        n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_head,
        d_value=f.size("v_head_dim") if latent else d_head, d_ff=f.size("intermediate_size", wide),
        tied=f.flag("tie_word_embeddings"), windows=windows(f, kind, n_layers), sparse=sparse, latent=latent,
        experts=experts,
    )  # fmt: skip
    return replace(made, **extras(f, kind))


def kv_heads(f: Fields, kind: str, n_heads: int) -> int:
    if kind == "falcon":
        if f.flag("new_decoder_architecture"):
            return f.size("num_kv_heads", n_heads)
        return 1 if f.flag("multi_query", True) else n_heads
    if kind in ("gpt2", "mpt", "bloom", "gpt_neox") or kind.startswith("deepseek_v"):
        return n_heads
    return f.size("num_key_value_heads", n_heads)


def head_width(f: Fields, kind: str, d_model: int, n_heads: int) -> int:
    if f.get("head_dim") is None and d_model % n_heads:
        expected = f"a multiple of {f.named('num_attention_heads')}, {n_heads}, where head_dim is not given"
        raise f.wrong("hidden_size", expected)
    width = f.size("head_dim", d_model // n_heads)
    if width % 2 and kind not in ("gpt2", "mpt", "bloom"):
        named = "head_dim" if f.get("head_dim") is not None else "hidden_size"
        raise f.wrong(named, f"an even width of each head, not {width}: RoPE turns pairs of dimensions")
    return width


def latents(f: Fields) -> Latent:
    f.refuse("attention_bias")
    return Latent(
        f.size("q_lora_rank", 0),
        f.size("kv_lora_rank"),
        f.size("qk_nope_head_dim"),
        f.size("qk_rope_head_dim"),
    )


def windows(f: Fields, kind: str, n_layers: int) -> tuple[int, ...]:
    """What each layer sees: sliding_window tokens or all (0), by layer_types or the family's pattern."""
    types = f.get("layer_types")
    if types is not None:
        allowed = ("full_attention", "sliding_attention")
        if not isinstance(types, list) or len(types) != n_layers:
            raise f.wrong("layer_types", f"a list of {n_layers} entries, one a layer")
        for found in types:
            if found not in allowed:
                raise Unusable(
                    f"{f.where}: layer_types has {shorten(found)}; expected {' or '.join(allowed)}"
                )
        sliding = [found == "sliding_attention" for found in types]
    elif kind in ("gemma2", "gemma3_text", "gpt_oss"):
        period = f.size("sliding_window_pattern", 6 if kind == "gemma3_text" else 2, least=2)
        sliding = [(i + 1) % period != 0 for i in range(n_layers)]
    elif kind in ("mistral", "mixtral", "phi3"):
        sliding = [f.get("sliding_window") is not None] * n_layers
    elif f.flag("use_sliding_window"):
        if kind not in ("qwen2", "qwen3"):
            raise f.wrong("layer_types", "a list that says which layers use_sliding_window is about")
        start = f.size("max_window_layers", 28, least=0)
        sliding = [i >= start and f.get("sliding_window") is not None for i in range(n_layers)]
    else:
        sliding = [False] * n_layers
    return tuple(f.size("sliding_window") if slides else 0 for slides in sliding)


def routed(f: Fields, kind: str, n_layers: int) -> tuple[Experts | None, tuple[bool, ...]]:
    """The experts, and which layers have them."""
    dense = (None, (False,) * n_layers)
    if kind not in ("mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2", "deepseek_v3"):
        return dense
    deepseek = kind.startswith("deepseek_v")
    if deepseek and f.get("num_local_experts") is None:
        return dense
    n = f.size("num_local_experts", most=MOST_EXPERTS)
    top_k = f.size("num_experts_per_tok")
    if top_k > n:
        raise f.wrong("num_experts_per_tok", f"at most {f.named('num_local_experts')}, {n}")
    if kind in ("mixtral", "gpt_oss"):
        d_ff, shared, sparse = f.size("intermediate_size"), 0, [True] * n_layers
    elif deepseek:
        d_ff = f.size("moe_intermediate_size")
        shared = d_ff * f.size("n_shared_experts", 0, least=0)
        first = f.size("first_k_dense_replace", 0, least=0, most=n_layers)
        every = f.size("moe_layer_freq", 1)
        sparse = [i >= first and i % every == 0 for i in range(n_layers)]
    else:
        d_ff = f.size("moe_intermediate_size")
        shared = f.size("shared_expert_intermediate_size") if kind == "qwen2_moe" else 0
        every, kept = f.size("decoder_sparse_step", 1), f.get("mlp_only_layers") or []
        if not isinstance(kept, list):
            raise f.wrong("mlp_only_layers", "a list of layers")
        sparse = [i not in kept and (i + 1) % every == 0 for i in range(n_layers)]
    made = Experts(n, top_k, d_ff, shared, kind == "qwen2_moe", kind in ("gpt_oss", "deepseek_v3"))
    return made, tuple(sparse)


def extras(f: Fields, kind: str) -> dict[str, Any]:
    """What the family adds to the matrices, or does without: biases, norms, positions, sinks."""
    everywhere = {"qkv_bias": True, "o_bias": True, "ffn_bias": True}
    layer_norm = {"norm_numbers": 2}
    plain = {"ffn_matrices": 2, **layer_norm}
    bias = f.flag("attention_bias")
    f.refuse("qk_layernorm", "add_cross_attention")
    if kind == "gpt2":
        return plain | everywhere | {"n_positions": f.size("n_positions")}
    if kind == "bloom":
        return plain | everywhere | {"embedding_norm": True}
    if kind == "mpt":
        attention = f.get("attn_config") or {}
        if not isinstance(attention, dict) or attention.get("attn_type", "multihead_attention") != (
            "multihead_attention"
        ):
            raise f.wrong("attn_config", "an object whose attn_type is 'multihead_attention'")
        f.one_of("no_bias", True, True)
        f.one_of("expansion_ratio", 4, 4)
        return {"ffn_matrices": 2}
    if kind == "phi":
        return plain | everywhere | {"head_bias": True, "norms_per_block": 1}
    if kind == "gpt_neox":
        return plain | {"qkv_bias": bias, "o_bias": bias, "ffn_bias": True}
    if kind == "falcon":
        n_norms = f.size("num_ln_in_parallel_attn", 2 if f.flag("new_decoder_architecture") else 1, most=2)
        one = f.flag("parallel_attn", True) and n_norms == 1
        biases = dict.fromkeys(everywhere, f.flag("bias"))
        return plain | biases | {"norms_per_block": 1 if one else 2}
    if kind == "stablelm":
        one = f.flag("use_parallel_residual")
        return layer_norm | {"qkv_bias": f.flag("use_qkv_bias"), "norms_per_block": 1 if one else 2}
    if kind in ("qwen2", "qwen2_moe"):
        return {"qkv_bias": True}
    if kind == "gpt_oss":
        return {"qkv_bias": bias, "o_bias": bias, "ffn_bias": True, "sinks": True}
    own: dict[str, Any] = {"qkv_bias": bias, "o_bias": bias, "ffn_bias": f.flag("mlp_bias")}
    if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
        own["qk_norm"] = "head"
    if kind in ("gemma2", "gemma3_text"):
        own["norms_per_block"] = 4
    if kind == "olmo":
        own["norm_numbers"] = 0
    if kind == "olmo2":
        own["qk_norm"] = "full"
    return own


def collection() -> list[Sizes]:
    """All published models."""
    return [from_dict(entry["config"], name, name) for name, entry in published().items()]
