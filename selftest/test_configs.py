"""Configs: what is read, what is refused in one line, and what a sizing run costs."""

import json
import os
import random
import subprocess
import sys

import pytest

from harness import configs, sizes
from harness.load import Unusable
from selftest.toy import ROOT, Toy

pytest_plugins = "pytester"

LLAMA = {
    "model_type": "llama", "vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 56, "rms_norm_eps": 1e-6,
}  # fmt: skip
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
DEEPSEEK = configs.published()["deepseek-v2"]["config"]
STRANGER = LLAMA | {"model_type": "newcomer"}

SPEC = '''
from harness import Table, claim, same, sizes

@claim("cost.any", needs=None, source="toy")
def test_any(model, card, receipt):
    """A model has parameters."""
    receipt(Table(f"Sizes of {model.name}", ("n", "card"), ((sizes.n_parameters(model), card.name),)))

@claim("cost.built", needs="Transformer", on="meta", source="toy")
def test_built(impl, model):
    """A model can be built."""
    sizes.as_reference(model)
    import torch
    model = impl.Transformer(sizes.as_reference(model), device="meta", dtype=torch.float32)
    with torch.no_grad():
        model(torch.zeros(1, 1, dtype=torch.int64, device="meta"))

@claim("bytes.four", needs=None, source="toy")
def test_four():
    """Four is four."""
    same(4, 4, "four")
'''


def read(values):
    return configs.from_dict(values, "mine", "--config=mine")


def without(values, *names):
    return {key: value for key, value in values.items() if key not in names}


# --- what is read --------------------------------------------------------------------------------------


def test_a_family_that_nobody_heard_of_is_read_as_a_llama_and_said_to_be():
    found, llama = read(STRANGER), read(LLAMA)
    assert sizes.parameters(found) == sizes.parameters(llama)
    assert sizes.as_reference(found) == sizes.as_reference(llama)
    assert llama.notes == ()
    assert found.notes == ("model_type newcomer: read as Llama-shaped, for want of a reader of its own",)
    assert "not given" in read(without(LLAMA, "model_type")).notes[0]


def test_code_that_a_config_points_to_is_ignored_and_said_to_be():
    found = read(LLAMA | {"auto_map": {"AutoConfig": "evil.py"}})
    assert found.notes == ("auto_map is ignored: no code that a config points to runs",)
    assert sizes.parameters(found) == sizes.parameters(read(LLAMA))


def test_text_model_of_a_larger_one_is_read():
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240}
    text |= {
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }  # as published: its family's reader adds the rest
    found = read({"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}})
    assert sizes.n_parameters(found) == 3_880_263_168
    assert found.windows[:7] == (1024, 1024, 1024, 1024, 1024, 0, 1024)
    assert found.notes == ("the text model only, from text_config",)


def test_a_window_that_no_layer_is_said_to_have_is_left_out_and_said_to_be():
    found = read(STRANGER | {"sliding_window": 5})
    assert found.windows == (0, 0, 0)
    assert found.notes[1] == "sliding_window is left out: nothing says which layers have one"


def test_head_width_is_derived_where_it_is_absent_or_null():
    assert read(LLAMA).d_head == read(LLAMA | {"head_dim": None}).d_head == 8
    assert read(LLAMA | {"head_dim": 10}).d_head == 10
    assert read(without(LLAMA, "num_key_value_heads")).n_kv_heads == 6


def test_layer_types_decide_which_layers_have_windows():
    types = ["sliding_attention", "full_attention", "sliding_attention"]
    assert read(STRANGER | {"layer_types": types, "sliding_window": 5}).windows == (5, 0, 5)
    assert read(LLAMA | {"model_type": "mistral"}).windows == (4096,) * 3
    assert read(LLAMA | {"model_type": "mistral", "sliding_window": None}).windows == (0,) * 3
    qwen = LLAMA | {"model_type": "qwen2", "sliding_window": 7, "max_window_layers": 2}
    assert read(qwen | {"use_sliding_window": False}).windows == (0, 0, 0)
    assert read(qwen | {"use_sliding_window": True}).windows == (0, 0, 7)


def test_windows_bound_the_cache_and_the_pairs():
    windowed = read(STRANGER | {"layer_types": ["sliding_attention"] * 3, "sliding_window": 5})
    assert sizes.cache_bytes(windowed, 100) == sizes.cache_bytes(windowed, 5)
    assert sizes.cache_bytes(windowed, 100, windowed=False) == 20 * sizes.cache_bytes(windowed, 5)
    for n in (1, 4, 5, 6, 23):
        assert sizes.pairs(n, 5) == sum(min(i, 5) for i in range(1, n + 1))
        assert sizes.pairs(n, 0) == n * (n + 1) // 2


def test_every_published_model_is_laid_out_as_counted():
    for s in configs.collection():
        tensors = sum(
            k * sum(t.numel() for t in sizes.skeleton(s, s.sparse.index(sparse)).values())
            for sparse, k in s.kinds.items()
        )
        found = sizes.parameters(s)
        ends = (
            found["embedding"] + found["output table"] + s.norm_numbers * s.d_model * (1 + s.embedding_norm)
        )
        assert tensors + ends + s.n_vocab * s.head_bias == sizes.n_parameters(s), s.name


def small(kind, rng):
    """A small config of a family, with the flags that change its counts drawn."""
    d_head, n_kv, layers = rng.choice([8, 16]), rng.choice([1, 2, 3]), rng.choice([3, 7])
    heads = n_kv * rng.choice([1, 2, 4])
    width, coin = heads * d_head, lambda: rng.random() < 0.5
    made = {"vocab_size": rng.choice([97, 131])}
    names = {"gpt2": ("n_embd", "n_layer", "n_head"), "mpt": ("d_model", "n_layers", "n_heads"),
             "bloom": ("hidden_size", "n_layer", "n_head")}  # fmt: skip
    usual = ("hidden_size", "num_hidden_layers", "num_attention_heads")
    made |= dict(zip(names.get(kind, usual), (width, layers, heads), strict=True))
    if kind == "falcon":
        made |= {name: coin() for name in ("bias", "parallel_attn", "multi_query")}
        if coin():
            made |= {"new_decoder_architecture": True, "num_kv_heads": n_kv}
            made |= {"num_ln_in_parallel_attn": rng.choice([1, 2, None])}
    elif kind not in names:
        made |= {"intermediate_size": rng.choice([40, 56]), "num_key_value_heads": n_kv}
        made |= {"tie_word_embeddings": coin(), "pad_token_id": 0}
    if kind in (
        "llama",
        "mistral",
        "mixtral",
        "qwen3",
        "qwen3_moe",
        "gemma",
        "gemma2",
        "gemma3_text",
        "gpt_oss",
    ):
        made["head_dim"] = rng.choice([8, 16, 24])
    if kind in ("llama", "qwen3", "gemma", "gemma2", "olmo", "olmo2", "gpt_oss", "smollm3", "gpt_neox"):
        made["attention_bias"] = coin()
    if kind in ("llama", "smollm3"):
        made["mlp_bias"] = coin()
    if kind == "stablelm":
        made |= {"use_qkv_bias": coin(), "use_parallel_residual": coin()}
    if kind in ("mixtral", "gpt_oss"):
        made |= {"num_local_experts": 5, "num_experts_per_tok": 2}
    if kind in ("qwen2_moe", "qwen3_moe"):
        made |= {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
        made |= {"decoder_sparse_step": rng.choice([1, 2]), "mlp_only_layers": [1]}
        made |= {"shared_expert_intermediate_size": 32} if kind == "qwen2_moe" else {}
    if kind.startswith("deepseek_v"):
        made |= {"num_key_value_heads": heads, "n_routed_experts": 8, "num_experts_per_tok": 2}
        made |= {"n_shared_experts": rng.choice([1, 2]), "moe_intermediate_size": 24, "n_group": 2}
        made |= {"first_k_dense_replace": 1, "q_lora_rank": rng.choice([None, 12]), "kv_lora_rank": 20}
        made |= {"qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14, "topk_group": 1}
    return made


@pytest.mark.parametrize("kind", configs.FAMILIES)
def test_a_library_builds_as_many_parameters_as_are_counted(kind):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    rng = random.Random(kind)
    for _ in range(3):
        given = small(kind, rng)
        config = transformers.CONFIG_MAPPING[kind](**given)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        built = sum(p.numel() for p in model.parameters())
        for values in ({"model_type": kind} | given, json.loads(config.to_json_string())):
            found = read(values)
            buffers = found.kinds[True] * found.experts.n if kind == "deepseek_v3" else 0
            assert sizes.n_parameters(found) - buffers == built, given
            types = getattr(config, "layer_types", None) or []
            assert not types or [w > 0 for w in found.windows] == [t == "sliding_attention" for t in types]


# --- what is refused -----------------------------------------------------------------------------------

REFUSED = [
    (without(LLAMA, "hidden_size"), "hidden_size is missing; expected an integer from 1"),
    (without(LLAMA, "vocab_size"), "vocab_size is missing"),
    (without(configs.published()["gpt2"]["config"], "n_layer"), "num_hidden_layers is missing"),
    (without(DEEPSEEK, "kv_lora_rank"), "kv_lora_rank is missing"),
    (LLAMA | {"hidden_size": "48"}, 'hidden_size is "48"; expected an integer'),
    (LLAMA | {"hidden_size": 48.0}, "hidden_size is 48.0; expected an integer"),
    (LLAMA | {"num_hidden_layers": True}, "num_hidden_layers is true; expected an integer"),
    (LLAMA | {"num_hidden_layers": None}, "num_hidden_layers is null"),
    (LLAMA | {"num_hidden_layers": [3]}, "num_hidden_layers is [3]"),
    (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers is 0; expected an integer from 1 to 4,096"),
    (LLAMA | {"intermediate_size": -56}, "intermediate_size is -56"),
    (LLAMA | {"intermediate_size": 10**12}, "intermediate_size is 1000000000000; expected an integer from 1"),
    (LLAMA | {"num_hidden_layers": 10**6}, "expected an integer from 1 to 4,096"),
    (LLAMA | {"tie_word_embeddings": "false"}, 'tie_word_embeddings is "false"; expected true or false'),
    (LLAMA | {"num_key_value_heads": 4}, "is 4; expected a divisor of num_attention_heads, 6"),
    (LLAMA | {"num_key_value_heads": 12}, "num_key_value_heads is 12; expected a divisor"),
    (LLAMA | {"hidden_size": 50}, "hidden_size is 50; expected a multiple of num_attention_heads, 6"),
    (LLAMA | {"head_dim": 9}, "head_dim is 9; expected an even width"),
    (LLAMA | {"model_type": 7}, "model_type is 7; expected a family's name"),
    (LLAMA | {"layer_types": ["full_attention"]}, "; expected a list of 3 entries"),
    (LLAMA | {"layer_types": ["linear_attention"] * 3}, 'layer_types has "linear_attention"; expected full'),
    (LLAMA | {"layer_types": ["sliding_attention"] * 3}, "sliding_window is missing"),
    (STRANGER | {"use_sliding_window": True}, "layer_types is missing; expected a list that says"),
    (MIXTRAL | {"num_experts_per_tok": 5}, "num_experts_per_tok is 5; expected at most num_local_experts, 4"),
    (MIXTRAL | {"num_local_experts": 10**9}, "num_local_experts is 1000000000"),
    (DEEPSEEK | {"first_k_dense_replace": 61}, "first_k_dense_replace is 61"),
    (DEEPSEEK | {"attention_bias": True}, "attention_bias is true; expected it to be absent or off"),
    ({"text_config": 3}, "text_config is 3; expected an object"),
    (STRANGER | {"num_local_experts": 8}, "not Llama-shaped: it has num_local_experts"),
    (STRANGER | {"type_vocab_size": 2}, "not Llama-shaped: it has type_vocab_size"),
    (STRANGER | {"use_bias": True}, "not Llama-shaped: it has use_bias"),
    (STRANGER | {"layer_norm_eps": 1e-5}, "not Llama-shaped: it has layer_norm_eps"),
    (STRANGER | {"hidden_act": "relu2"}, "hidden_act is \"relu2\"; expected 'silu'"),
    (without(STRANGER, "intermediate_size"), "not Llama-shaped: intermediate_size is missing"),
    ({}, "model_type '' is unknown, and not Llama-shaped: vocab_size is missing"),
]  # fmt: skip


@pytest.mark.parametrize("values, says", REFUSED, ids=[says[:40] for _, says in REFUSED])
def test_a_config_that_cannot_be_sized_is_refused_by_its_field(values, says):
    with pytest.raises(Unusable) as caught:
        read(values)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


JUNK = (None, 0, -1, 1, 3, 2.5, True, "8", "", [], [1], {}, 10**30, float("nan"), float("inf"))


def test_no_value_of_any_field_does_worse_than_being_refused():
    said = []
    for entry in configs.published().values():
        for field in entry["config"]:
            for value in JUNK:
                try:
                    assert sizes.n_parameters(read(entry["config"] | {field: value})) > 0
                except Unusable as error:
                    said.append(str(error))
    assert len(said) > 1000
    assert [line for line in said if "expected" not in line or "\n" in line] == []


# --- at the command line --------------------------------------------------------------------------------


@pytest.fixture
def toy(pytester):
    toy = Toy(pytester)
    toy.spec(SPEC)
    return toy


def file(toy, content, name="config.json"):
    path = toy.pytester.path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return f"--config={path}"


def refused(result, *says):
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.stderr.lines if line.startswith("ERROR:")]
    assert len(errors) == 1
    assert all(text in errors[0] for text in says)
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    "content, says",
    [
        (b"hidden_size: 48", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[1, 2]", "a JSON list; expected an object"),
        (b"null", "expected an object"),
        (without(LLAMA, "hidden_size"), "hidden_size is missing; expected an integer"),
        (LLAMA | {"num_key_value_heads": 4}, "num_key_value_heads is 4; expected a divisor"),
    ],
    ids=["yaml", "empty", "bytes", "deep", "digits", "list", "null", "missing", "impossible"],
)
def test_a_file_that_cannot_be_sized_ends_the_run_in_one_line(toy, content, says):
    refused(toy(file(toy, content)), "config.json", says)


@pytest.mark.parametrize(
    "option, says",
    [
        ("--config=llama-3-8", "did you mean llama-3-8b"),
        ("--config=nowhere/config.json", "no such file; give a config.json or a published model's name"),
        ("--config=spec", "is a folder; give the config.json in it"),
        ("--config=" + "x" * 5000, "no such file"),
        ("--card=b200", "a100-80gb, h100-80gb, h200, or memory=80e9"),
        ("--card=memory=1,bandwidth=2", "unknown; give"),
        ("--card=memory=1,bandwidth=0,flops=3", "bandwidth is '0'; expected a positive number"),
        ("--card=memory=1,bandwidth=2,flops=nan", "flops is 'nan'"),
        ("--card=memory=80GB,bandwidth=2,flops=3", "memory is '80GB'"),
    ],
)
def test_an_option_that_names_nothing_ends_the_run_in_one_line(toy, option, says):
    refused(toy(option), option[:40], says)


def test_a_sizing_run_judges_the_named_models_alone_and_prints_their_tables(toy):
    given = (file(toy, STRANGER | {"auto_map": {}}), "--config=gemma-2-9b")
    result = toy(*given, "--card=memory=1e9,bandwidth=1e9,flops=1e9")
    assert result.ret == 0
    assert set(toy.verdicts()) == {"cost.any", "cost.built"}
    said = result.stdout.str()
    assert "9,241,705,984" in said
    assert "card of your own" in said
    assert "read as Llama-shaped" in said
    assert toy.verdicts()["cost.built"] == "holds"  # of the one that the interface can express


def test_a_model_beyond_the_interface_is_sized_all_the_same(toy):
    result = toy("--config=deepseek-v3")
    assert result.ret == 0
    assert toy.verdicts() == {"cost.any": "holds", "cost.built": "not offered"}
    assert toy.detail("cost.built") == "deepseek-v3 has experts, latents, beyond the interface"


def test_two_configs_of_one_name_stay_apart(toy):
    (toy.pytester.path / "other").mkdir()
    first, second = file(toy, LLAMA | {"_name_or_path": "a/b/mine"}), file(toy, LLAMA, "mine.json")
    result = toy(first, second, first)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["Sizes of mine", "Sizes of mine-2"])


def test_without_a_config_the_default_models_run_beside_the_other_claims(toy):
    assert toy().ret == 0
    verdicts = toy.verdicts()
    assert verdicts == {"cost.any": "holds", "cost.built": "holds", "bytes.four": "holds"}


@pytest.mark.parametrize("name", ["llama-3.1-405b", "deepseek-v3"])
def test_sizing_the_largest_models_is_light(name):
    """Under 500 MB, and 5 CPU seconds on an idle machine, most of them torch's; twice that on a busy one."""
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--config={name}", "-k",
               "cost or serving or training or gqa")  # fmt: skip
    done = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    assert done.returncode == 0
    assert used.ru_utime < 10
    if sys.platform == "linux":
        assert used.ru_maxrss < 500e3  # in kB
