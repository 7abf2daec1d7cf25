"""Blocks of models: of GPT, of ResNet, of Mamba-2."""

from __future__ import annotations

import torch
from torch import Tensor, nn

F = nn.functional


class GPTBlock(nn.Module):
    """Causal attention and two layers, each after a norm and beside what comes in."""

    def __init__(self, width: int, heads: int, sequence: int = 8, batch: int = 2) -> None:
        super().__init__()
        self.example = (batch, sequence, width)
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merged = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return what goes on to the next block."""
        batch, sequence, width = x.shape
        parts = self.qkv(self.first(x)).split(width, -1)
        q, k, v = (y.view(batch, sequence, self.heads, -1).transpose(1, 2) for y in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merged(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class ResNetBlock(nn.Module):
    """Two convolutions with norms of batches, beside what comes in."""

    def __init__(self, channels: int, size: int = 8, batch: int = 2) -> None:
        super().__init__()
        self.example = (batch, channels, size, size)
        self.one = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.two = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first, self.second = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return what goes on to the next block."""
        y = F.relu(self.first(self.one(x)))
        return F.relu(x + self.second(self.two(y)))


def _segments(x: Tensor) -> Tensor:
    """Return sums of steps from each column to each row; rows before are at negative infinity."""
    total = x.cumsum(-1)
    seen = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril()
    return (total[..., :, None] - total[..., None, :]).masked_fill(~seen, -torch.inf)


class MambaBlock(nn.Module):
    """Mamba-2: a recurrence of states in chunks, as products of matrices."""

    def __init__(
        self, width: int, heads: int, state: int, chunk: int, sequence: int = 8, batch: int = 2
    ) -> None:
        super().__init__()
        self.example = (batch, sequence, width)
        self.inner, self.heads, self.state, self.chunk = 2 * width, heads, state, chunk
        mixed = self.inner + 2 * state
        self.enter = nn.Linear(width, self.inner + mixed + heads, bias=False)
        self.mix = nn.Conv1d(mixed, mixed, 4, groups=mixed, padding=3)
        self.step = nn.Parameter(torch.randn(heads))
        self.decay = nn.Parameter(torch.rand(heads))
        self.skip = nn.Parameter(torch.ones(heads))
        self.scale = nn.Parameter(torch.ones(self.inner))
        self.leave = nn.Linear(self.inner, width, bias=False)

    def _states(self, x: Tensor, decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
        shape, size = x.shape, self.chunk
        count = shape[1] // size
        x = x.view(shape[0], count, size, *shape[2:])
        b, c = (y.view(shape[0], count, size, self.state) for y in (b, c))
        decay = decay.view(shape[0], count, size, -1).permute(0, 3, 1, 2)
        total = decay.cumsum(-1)
        scores = torch.einsum("zcln,zcsn->zcls", c, b)[:, None] * _segments(decay).exp()
        inside = torch.einsum("zhcls,zcshp->zclhp", scores, x)
        left = (total[..., -1:] - total).exp().permute(0, 2, 3, 1)[..., None]
        states = torch.einsum("zcln,zclhp->zchpn", b, left * x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        between = _segments(F.pad(total[..., -1], (1, 0))).exp()
        states = torch.einsum("zhdc,zchpn->zdhpn", between, states)[:, :-1]
        before = torch.einsum("zcln,zchpn->zclhp", c, states)
        return (inside + before * total.exp().permute(0, 2, 3, 1)[..., None]).reshape(shape)

    def forward(self, x: Tensor) -> Tensor:
        """Return what goes on to the next block."""
        batch, sequence, _ = x.shape
        gate, mixed, step = self.enter(x).split(
            [self.inner, self.inner + 2 * self.state, self.heads], -1
        )
        mixed = F.silu(self.mix(mixed.transpose(1, 2))[..., :sequence].transpose(1, 2))
        y, b, c = mixed.split([self.inner, self.state, self.state], -1)
        step = F.softplus(step + self.step)
        y = y.reshape(batch, sequence, self.heads, -1)
        y = (
            self._states(y * step[..., None], -self.decay.exp() * step, b, c)
            + y * self.skip[:, None]
        )
        y = y.reshape(batch, sequence, self.inner) * F.silu(gate)
        return self.leave(F.rms_norm(y, (self.inner,), self.scale, 1e-5))
