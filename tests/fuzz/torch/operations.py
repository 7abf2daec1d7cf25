"""The lines that functions of torch are made of: of one tensor, or of two; ``DIM`` is drawn."""

from __future__ import annotations

ELEMENTS = (
    "torch.exp({0} * 0.3)", "torch.sigmoid({0})", "torch.rsqrt({0}.abs() + 1)", "F.relu({0})",
    "F.silu({0})", "F.gelu({0})", "F.gelu({0}, approximate='tanh')", "F.softplus({0})",
    "torch.clamp({0}, -0.51, 0.52)", "{0}.tanh()", "torch.sqrt({0}.abs() + 0.1)",
    "torch.log({0}.abs() + 0.5)", "{0} * {0}", "{0} ** 3", "{0}.abs()", "torch.sin({0})",
    "torch.atan({0})", "torch.erf({0})", "torch.log1p({0}.abs())", "torch.expm1({0} * 0.2)",
    "F.leaky_relu({0})", "F.elu({0})", "F.mish({0})", "F.hardtanh({0})", "F.hardswish({0})",
    "F.logsigmoid({0})", "F.threshold({0}, 0.1, 0.0)", "torch.nan_to_num({0})", "F.selu({0})",
    "torch.where({0} > 0, {0}, 0.5 * {0})", "{0}.masked_fill({0} > 0.7, -1.0)", "F.softsign({0})",
    "F.softshrink({0})", "F.hardsigmoid({0})", "F.celu({0})", "torch.frac({0})", "{0}.square()",
)  # fmt: skip
FOLDS = (
    "{0}.sum(dim=DIM)", "{0}.sum(dim=DIM, keepdim=True)", "{0}.mean(dim=DIM, keepdim=True)",
    "torch.amax({0}, DIM)", "torch.amin({0}, DIM, keepdim=True)", "{0}.max(dim=DIM).values",
    "torch.min({0}, DIM)[0]", "torch.var({0}, DIM)", "{0}.std(dim=DIM, keepdim=True)",
    "torch.logsumexp({0}, DIM)", "torch.prod({0} * 0.3 + 1, DIM)", "{0}.norm(dim=DIM)",
    "torch.linalg.vector_norm({0}, dim=DIM, keepdim=True)", "{0}.square().mean()", "{0}.sum()",
    "{0}.median(dim=DIM).values", "torch.diff({0}, dim=DIM)", "{0}.std(correction=1)",
)  # fmt: skip
ROWS = (
    "torch.softmax({0}, DIM)", "F.log_softmax({0}, DIM)", "F.softmin({0}, DIM)",
    "F.layer_norm({0}, ({0}.shape[-1],))", "F.rms_norm({0}, ({0}.shape[-1],))",
    "F.normalize({0}, dim=DIM)", "torch.cumsum({0}, DIM)", "torch.cumprod({0} * 0.5 + 1, DIM)",
    "{0}.cummax(DIM)[0]", "torch.logcumsumexp({0}, DIM)", "torch.sort({0}, DIM)[0]",
    "{0}.sort(dim=DIM, descending=True).values", "torch.topk({0}, 1, DIM)[0]",
    "torch.gather({0}, DIM, torch.argsort({0}.detach(), DIM))",
)  # fmt: skip
VIEWS = (
    "{0}.unsqueeze(DIM)", "{0}.flatten()", "{0}.flip(DIM)", "torch.roll({0}, 2, DIM)",
    "torch.cat([{0}, {0} * 2], DIM)", "torch.stack([{0}, -{0}], DIM)", "{0}.narrow(DIM, 0, 1)",
    "torch.chunk({0}, 2, DIM)[0]", "{0}.split(2, DIM)[-1]", "torch.tril({0})", "{0}.triu(1)",
    "F.pad({0}, (1, 2))", "F.pad({0}, (0, -1))", "{0}.repeat_interleave(2, DIM)", "{0}[..., ::2]",
    "{0}[1:]", "{0}[..., None]", "{0}.reshape(-1)", "{0}.view({0}.shape[0], -1)", "{0}.mT",
    "{0}.expand(2, *{0}.shape)", "torch.index_select({0}, DIM, torch.tensor([0, 0]))",
    "{0}[:, None].expand(-1, 3, *{0}.shape[1:]).flatten(0, 1)", "{0}[:1].expand_as({0})",
    "{0}.unsqueeze(DIM).transpose(0, -1).contiguous()", "{0}.unfold(DIM, 2, 1)",
    "torch.diagonal({0}, 0, 0, -1)", "{0}.movedim(0, -1)",
    "F.avg_pool1d({0}, 2)", "F.max_pool1d({0}, 2)", "{0}.tile(2)",
    "torch.outer({0}.flatten()[:4], {0}.flatten()[-3:])",
)  # fmt: skip
PAIRS = (
    "{0} + {1}", "{0} * {1}", "{0} - {1}", "{0} / ({1}.abs() + 1)", "torch.maximum({0}, {1})",
    "torch.minimum({0}, {1})", "torch.where({0} > {1}, {0}, {1})", "torch.atan2({0}, {1})",
    "torch.pow({0}.abs() + 0.5, {1} * 0.3)", "torch.hypot({0}, {1})", "torch.lerp({0}, {1}, 0.3)",
    "torch.addcmul({0}, {0}, {1})", "torch.logaddexp({0}, {1})", "torch.cat([{0}, {1}], -1)",
    "torch.cat([{0}, {1}], 0)", "torch.copysign({0}, {1}.abs() + 1)",
    "torch.fmod({0}, {1}.abs() + 1)",
)  # fmt: skip
PRODUCTS = (
    "{0} @ {1}.mT", "{0} @ {1}", "torch.einsum('...i,...i->...', {0}, {1})", "F.linear({0}, {1})",
    "F.scaled_dot_product_attention({0}[None], {1}[None], {1}[None])", "torch.bmm({0}, {1}.mT)",
    "torch.cdist({0}, {1})", "F.mse_loss({0}, {1})", "F.l1_loss({0}, {1})",
    "F.kl_div({0}, {1}.abs() + 0.1)",
    "F.smooth_l1_loss({0}, {1})", "F.huber_loss({0}, {1})", "F.cosine_similarity({0}, {1}, -1)",
    "F.binary_cross_entropy_with_logits({0}, torch.sigmoid({1}))",
)  # fmt: skip
FAMILIES = {ELEMENTS: 20, FOLDS: 15, ROWS: 15, VIEWS: 25, PAIRS: 12, PRODUCTS: 13}
"""Of lines, with how often each is drawn."""
