"""Generation: the same pass, run again and again, with a cache so that nothing is computed twice."""

import pytest
import torch

from harness import SMALL, claim, close, probe


@claim(
    "generation.cached-equals-full",
    needs="Transformer",
    through=("attention", "rope"),
    source="refresher §13; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("chunks", [(1,) * 9, (3, 1, 1, 2, 2), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_decoding_with_a_cache_repeats_the_full_pass(build, draw, dtype, chunks, base):
    """Tokens fed through a cache, one by one or in chunks, get the logits of one full pass."""
    config = SMALL.but(rope_base=base)
    weights = draw.weights(config)
    tokens = draw.tokens(config.n_vocab, 2, sum(chunks))
    model = build(config, weights)
    with torch.no_grad():
        full = model(tokens)
        cache = model.new_cache()
        stepwise = torch.cat([model(chunk, cache) for chunk in tokens.split(chunks, dim=1)], dim=1)
    close(stepwise, full, 2 * probe.logits_bound(config, weights, tokens, dtype), "logits by steps")
