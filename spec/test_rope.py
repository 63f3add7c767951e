import pytest
from harness import agrees, claim
import torch

def turned(x, positions, base=1e4):
    a, b = x.chunk(2, -1)
    angle = positions.to(x.dtype)[:, None] * base ** -(torch.arange(0, x.shape[-1], 2).to(x.dtype) / x.shape[-1])
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)

@claim("rope.relative-offset", needs="rope", source="refresher §14")
@pytest.mark.parametrize("m, n", [(5, 8), (105, 108), (4093, 4096)])
def test_score_depends_only_on_the_offset(impl, draw, device, m, n):
    """Sliding query and key along together leaves their score where it was."""
    q, k = draw(2, 6, 1, 64), draw(2, 6, 1, 64)
    at = lambda i: torch.tensor([i], device=device)
    def slide(rope, q, k):
        score = lambda m, n: (rope(q, at(m)).double() * rope(k, at(n)).double()).sum(-1)
        return score(m, n) - score(0, n - m)
    agrees(impl.rope, turned, q, k, quantity=slide, size=10.0, what="the score's change")
