"""Instruments: FLOPs, parameters and bytes, read off a running implementation."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode


def flops(call: Callable[[], Any]) -> int:
    """FLOPs of the matrix multiplies in a call. Raises "not offered" where none can be seen."""
    return sum(flops_by_kind(call).values())


def flops_by_kind(call: Callable[[], Any]) -> dict[str, int]:
    """FLOPs by operator: "mm" for projections, "bmm" for scores and averages over heads.

    By the formulas of torch's own counter, whose table by module takes half as long as the pass itself. On
    the CPU it sees nothing inside a fused kernel, so count on "meta".
    """
    from torch.utils.flop_counter import flop_registry

    counts: dict[str, int] = {}

    def see(op: Any, args: Any, kwargs: Any, made: Any) -> None:
        formula = flop_registry.get(op._overloadpacket)
        if formula is not None:
            kind = str(op._overloadpacket).split(".")[-1]
            counts[kind] = counts.get(kind, 0) + formula(*args, **kwargs, out_val=made)

    observe(call, see)
    if not sum(counts.values()):
        raise NotImplementedError("not offered: its FLOPs cannot be counted on meta")
    return counts


class Shapes(TorchDispatchMode):
    """Looks up what an operation on "meta" came to when it ran before, and fills nothing there.

    torch works out the shape of an elementwise operation in Python, which takes many times what the CPU
    needs for the numbers. `known` is kept by the caller, for as long as a run lasts. `watching` are shown
    each operation: see(op, args, kwargs, made).
    """

    fills = ("aten::normal_", "aten::uniform_", "aten::fill_.Scalar", "aten::zero_")

    def __init__(self, known: dict[Any, tuple[Any, ...]]) -> None:
        super().__init__()
        self.known = known
        self.watching: list[Callable[..., None]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: the wrapper that keeps torch's compiler out takes as long as half a looked-up operation."""
        return False

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if op.name() in self.fills and args[0].is_meta:
            return args[0]
        inputs: set[int] = set()
        try:
            arguments = described(args, inputs), described(tuple(kwargs.items()), inputs)
            key: Any = (op, torch.get_default_dtype(), *arguments)
            found = self.known.get(key)
        except TypeError:  # an argument that cannot be described
            key = found = None
        if found:
            made = torch.empty_strided(found[0], found[1], dtype=found[2], device="meta")
        elif op._can_decompose() and self.watching:  # under inference_mode whole layers come here
            with self:
                return op.decompose(*args, **kwargs)
        else:
            made = op(*args, **kwargs)
            fresh = not op._schema.is_mutable and not any(r.alias_info for r in op._schema.returns)
            fresh = fresh and not op._can_decompose() and type(made) is Tensor and made.is_meta
            if key and fresh and storage(made) not in inputs:
                self.known[key] = (made.shape, made.stride(), made.dtype)
        for see in self.watching:
            see(op, args, kwargs, made)
        return made


def observe(call: Callable[[], Any], see: Callable[..., None]) -> Any:
    """Run a call, and show `see` each operation: see(op, args, kwargs, made)."""
    mode = _get_current_dispatch_mode()
    if not isinstance(mode, Shapes):
        with Shapes({}):
            return observe(call, see)
    mode.watching.append(see)
    try:
        return call()
    finally:
        mode.watching.remove(see)


def described(arguments: Any, inputs: set[int]) -> Any:
    """What of an operation's arguments its answer's shape follows from; TypeError where that is not all.

    The memory of tensors among them is added to `inputs`.
    """
    if isinstance(arguments, Tensor):
        if type(arguments) not in (Tensor, torch.nn.Parameter) or not arguments.is_meta:
            raise TypeError
        inputs.add(storage(arguments))
        return (arguments.shape, arguments.stride(), arguments.dtype)
    if isinstance(arguments, (tuple, list)):
        return tuple(described(x, inputs) for x in arguments)
    hash(arguments)
    return (type(arguments), arguments)


class Named(dict[str, Tensor]):
    """Parameters by name. The interface fixes names for loading only, so a missing one is no break."""

    def __missing__(self, name: str) -> Tensor:
        raise NotImplementedError(f"not offered: its parameters have names of their own, and no {name}")


def parameters(model: Any) -> Named:
    """A model's parameters by name, each once even if tied."""
    return Named((name.removeprefix("_model."), p) for name, p in model.named_parameters())


def matrices(model: Any, part: str) -> dict[str, Tensor]:
    """The matrices of the first layer's "self_attn" or "mlp", by Hugging Face Llama's names for them.

    Raises "not offered" for a model that names or packs them another way.
    """
    own, prefix = parameters(model), f"model.layers.0.{part}."
    own[prefix + {"self_attn": "q_proj", "mlp": "up_proj"}[part] + ".weight"]  # is there, or not offered
    return {n.split(".")[-2]: p for n, p in own.items() if n.startswith(prefix) and p.ndim == 2}


def n_parameters(model: Any) -> int:
    return sum(p.numel() for p in parameters(model).values())


def saved(call: Callable[[], Any]) -> list[Tensor]:
    """The tensors that autograd keeps for the backward pass of a call, each storage once."""
    kept: dict[int, Tensor] = {}

    def pack(x: Tensor) -> Tensor:
        kept[storage(x)] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        call()
    return list(kept.values())


def at_depth(count: Callable[[Any], Any], config: Any) -> Any:
    """A count for all of a model's blocks, which add the same each, from models of one and of two.

    Where one run yields several counts, as a tuple, so does this.
    """
    one, two = (count(config.but(n_layers=n)) for n in (1, 2))
    if isinstance(one, tuple):
        return tuple(a + (config.n_layers - 1) * (b - a) for a, b in zip(one, two, strict=True))
    return one + (config.n_layers - 1) * (two - one)


def storage(x: Tensor) -> int:
    """What identifies a tensor's memory, on "meta" too, where it has no address."""
    return int(x.untyped_storage()._cdata)


def watch(call: Callable[[], Any], see: Callable[[Any, list[Tensor], list[Tensor]], None]) -> Any:
    """Run a call, and show `see` each operation with the tensors that go in and come out.

    Raises "not offered" for a call that works but not while watched, as compiled ones may.
    """
    from torch.utils._pytree import tree_leaves

    def tensors(tree: Any) -> list[Tensor]:
        return [x for x in tree_leaves(tree) if isinstance(x, Tensor)]

    try:
        return observe(call, lambda op, args, kwargs, made: see(op, tensors((args, kwargs)), tensors(made)))
    except Exception:
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()  # forget what failed to compile while watched
        call()  # raises again what is the implementation's own fault
        raise NotImplementedError("not offered: its operations cannot be watched") from None


LOOKUPS = ("embedding", "index_select", "index", "gather")


def reads(call: Callable[[], Any], model: Any) -> int:
    """Bytes of a model's parameters that the operations of a call read.

    Views read nothing, and a lookup reads the rows it returns. Raises "not offered" where the
    parameters cannot be followed, because copies of them do the work.
    """
    own = {storage(p) for p in parameters(model).values()}
    found, touched = [], set()

    def see(op: Any, into: list[Tensor], out: list[Tensor]) -> None:
        views = {storage(x) for x in out}
        lookup = getattr(op, "_schema", op).name.split("::")[-1] in LOOKUPS
        for x in into:
            if storage(x) in own - views:
                touched.add(storage(x))
                found.append(sum(y.nbytes for y in out) if lookup else x.nbytes)

    watch(call, see)
    if touched != own:
        raise NotImplementedError("not offered: its weights cannot be followed")
    return sum(found)


def largest(call: Callable[[], Any]) -> int:
    """Numbers in the largest tensor that a call makes."""
    sizes = [0]
    watch(call, lambda op, into, out: sizes.extend(numbers(x) for x in out))
    return max(sizes)


def left_over(call: Callable[[], Any]) -> int:
    """Numbers in the largest tensor that a call made, did not return, and did not let go."""
    from torch.multiprocessing.reductions import StorageWeakRef

    made: list[tuple[int, int, Any]] = []

    def see(op: Any, into: list[Tensor], out: list[Tensor]) -> None:
        made.extend((numbers(x), storage(x), StorageWeakRef(x.untyped_storage())) for x in out)

    answer = watch(call, see)
    return max((n for n, of, ref in made if not ref.expired() and of != storage(answer)), default=0)


def numbers(x: Tensor) -> int:
    """How many numbers a tensor's memory holds; a broadcast view holds few."""
    return x.untyped_storage().nbytes() // x.element_size()
