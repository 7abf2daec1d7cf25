"""The lines that random functions are made of, by what they take."""

from __future__ import annotations

ANY = (
    "{0} == {0}", "np.abs({0})", "np.sign({0})", "np.square({0})", "{0} * {0}", "{0} > 1",
    "{0} != 0", "np.where({0} > 0, {0}, 0)", "np.clip({0}, 0, 3)", "{0} + {0}", "{0} * 2",
    "{0} + 1", "3 - {0}", "np.maximum({0}, 1)", "np.minimum({0}, 2)", "{0}.astype('float32')",
    "{0}.astype('float64')", "{0} / 7", "2 / (np.abs({0}) + 1)", "np.logical_not({0})",
    "np.zeros_like({0}) + {0}", "np.full_like({0}, 3) * {0}", "np.isclose({0}, 1)",
)  # fmt: skip
"""Of one array of any numbers."""
FLOAT = (
    "-{0}", "np.exp({0})", "np.exp(-np.abs({0}))", "np.log({0})", "np.sqrt({0})",
    "np.sqrt(np.abs({0}))", "np.tanh({0})", "np.sin({0})", "np.cos({0})", "1 / {0}",
    "1 / (1 + np.exp(-{0}))", "{0} ** 3", "{0} ** 2", "np.floor({0})", "np.ceil({0})",
    "np.rint({0})", "np.trunc({0})", "np.isnan({0})", "np.isfinite({0})", "np.isinf({0})",
    "np.nan_to_num({0})", "np.nan_to_num({0}, nan=2.0, posinf=9.0, neginf=-9.0)", "{0} / 49.0",
    "{0} * 0.1", "{0} - 1e4", "{0} * 1e-3", "np.maximum({0}, 0)", "np.exp2({0})",
    "np.expm1({0})", "np.log1p(np.abs({0}))", "np.log2(np.abs({0}))", "np.arctan({0})",
    "np.cbrt({0})", "np.reciprocal({0})", "{0} // 3.0", "{0} % 3.0",
    "np.where(np.abs({0}) < 99, {0}, 0).astype('int32')", "{0}.astype('float16')",
    "np.where({0} == {0}, {0}, 0.0)", "np.where({0} > 0, {0}, -np.inf)", "np.fmax({0}, 0.5)",
    "np.where({0} > 0, np.log({0}), 0.0)", "np.where({0} > -9, {0}, np.nan)",
    "np.round({0}, 1)", "{0} * np.float64(3.5)", "{0} + np.float32(0.5)",
    "np.cosh(np.tanh({0}))", "np.where(np.isnan({0}), 0, {0})", "{0}.astype('bfloat16')",
    "np.where({0} > 0, np.sqrt({0}), -1)", "np.where(np.abs({0}) > 1, 1 / {0}, {0})",
    "np.where(np.isfinite({0}), {0}, 7)",
    "np.sinh(np.tanh({0}))", "np.arcsin(np.tanh({0}))", "np.tan(np.tanh({0}))",
    "np.log10(np.abs({0}) + 1)", "np.arcsinh({0})", "np.heaviside({0}, 0.5)", "np.signbit({0})",
    "np.select([{0} > 1, {0} < 0], [{0}, -{0}], 0.5)",
)  # fmt: skip
WHOLE = (
    "{0} // 3", "{0} % 4", "{0} // -2", "{0} % -3", "{0} & 6", "{0} | 1", "{0} ^ 5", "{0} << 1",
    "{0} >> 1", "~{0}", "{0}.astype('int8')", "{0}.astype('uint8')", "{0}.astype('int64')",
    "{0}.astype('int32')", "{0}.astype('bool')", "{0} ** 2", "np.fmod({0}, 3)", "{0} * 1.5",
    "np.sqrt(np.abs({0}) + 1)", "{0} * np.float32(0.5)", "{0}.astype('int16')",
    "{0}.astype('uint32')", "{0}.astype('float16')", "-{0}",
    "{0} << 40", "{0} >> 40",
)  # fmt: skip
TRUTH = (
    "~{0}", "{0}.astype('int32')", "{0}.astype('float32')", "{0} * 1.5", "np.where({0}, 1.5, -0.5)",
    "{0} ^ True", "{0} * 3", "np.where({0}, np.float32(2), np.float32(-np.inf))",
)  # fmt: skip

PAIRS = (
    "{0} + {1}", "{0} * {1}", "np.maximum({0}, {1})", "np.minimum({0}, {1})", "{0} < {1}",
    "{0} == {1}", "{0} >= {1}", "np.where({0} > {1}, {0}, {1})", "np.where({1} > 0, {0}, 0)",
    "np.where({1} > 0, {0}, np.nan)", "np.where({1} != 0, {0} / {1}, 0)",
    "np.logical_or({0}, {1})", "np.logical_and({0}, {1})", "np.logical_xor({0}, {1})",
    "{0} / (np.abs({1}) + 1)", "np.add({0}, {1})",
)  # fmt: skip
"""Of two arrays that are broadcast together; those of two that are no truth values follow."""
NUMBERS = ("{0} - {1}", "{0} - {1}", "({0} - {1}) ** 2", "{0} - 2 * {1}")
FLOATS = (
    "{0} / {1}", "np.exp({0}) * {1}", "np.hypot({0}, {1})", "{0} * np.exp({1})",
    "np.arctan2({0}, {1})", "np.copysign({0}, {1})", "{0} / np.sqrt({1})",
    "np.abs({0}) ** np.sign({1})", "{0} * np.sqrt({1} + 1)",
    "np.where({0} == {1}, {0}, -np.inf)", "np.where({0} < {1}, -np.inf, {0})", "np.fmin({0}, {1})",
)  # fmt: skip
WHOLES = (
    "{0} // np.where({1} == 0, 1, {1})", "{0} % np.where({1} == 0, 1, {1})", "{0} & {1}",
    "{0} | {1}", "{0} ^ {1}",
    "{0} << {1}", "{0} >> {1}", "{0} >> ({1} & 7)",
)  # fmt: skip
TRUTHS = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} * {1}", "{0} + {1}", "{0} <= {1}")

FOLDS = (
    "np.max({0}, axis=AXIS, keepdims=KEPT)", "{0}.min(axis=AXIS, keepdims=KEPT)",
    "np.any({0}, axis=AXIS, keepdims=KEPT)", "np.all({0}, axis=AXIS, keepdims=KEPT)",
    "np.count_nonzero({0}, axis=AXIS, keepdims=KEPT)",
    "np.max({0}, axis=AXIS, keepdims=KEPT, initial=1)",
    "np.min({0}, axis=AXIS, keepdims=KEPT, where={0} > 0, initial=5)",
    "np.any({0} > 1, axis=AXIS, keepdims=KEPT)", "np.ptp({0}, axis=AXIS, keepdims=KEPT)",
    "np.max({0}, axis=AXIS, keepdims=KEPT, where=np.isfinite({0}), initial=-1)",
)  # fmt: skip
POSITIONS = ("np.argmax({0}, axis=AXIS)", "np.argmin({0}, axis=AXIS, keepdims=KEPT)")
"""Reductions over one axis only."""
SUMS = (
    "np.sum({0}, axis=AXIS, keepdims=KEPT)", "{0}.mean(axis=AXIS, keepdims=KEPT)",
    "np.sum({0}, axis=AXIS, keepdims=KEPT)", "{0}.sum(axis=AXIS, keepdims=KEPT)",
    "np.mean({0}, axis=AXIS, keepdims=KEPT)",
    "np.sum({0}, axis=AXIS, keepdims=KEPT, where={0} > 0)",
    "np.sum({0}, axis=AXIS, keepdims=KEPT, initial=2)",
    "np.mean({0}, axis=AXIS, keepdims=KEPT, where={0} > 0)",
    "np.sum({0}, axis=AXIS, keepdims=KEPT, dtype='float64')",
    "np.sum({0}, axis=AXIS, keepdims=KEPT, where=np.isfinite({0}))",
    "np.sum(np.where({0} > 0, {0}, 0), axis=AXIS, keepdims=KEPT)",
    "np.average({0}, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
SPREADS = (
    "np.var({0}, axis=AXIS, keepdims=KEPT)", "{0}.std(axis=AXIS, keepdims=KEPT)",
    "np.var({0}, axis=AXIS, keepdims=KEPT, ddof=1)", "{0}.std(axis=AXIS, keepdims=KEPT, ddof=1)",
    "np.var({0}, axis=AXIS, keepdims=KEPT, ddof=2)",
    "np.nanvar({0}, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
PRODUCT = "np.prod({0}, axis=AXIS, keepdims=KEPT)"
FLOAT_FOLDS = (
    "np.logaddexp.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "np.nansum({0}, axis=AXIS, keepdims=KEPT)", "np.nanmax({0}, axis=AXIS, keepdims=KEPT)",
    "np.nanmean({0}, axis=AXIS, keepdims=KEPT)", "np.nanmin({0}, axis=AXIS, keepdims=KEPT)",
    "np.logaddexp.accumulate({0}, axis=AXIS)", "np.nancumsum({0}, axis=AXIS)",
    "np.linalg.norm({0}, axis=AXIS, keepdims=KEPT)", "np.median({0}, axis=AXIS, keepdims=KEPT)",
    "np.quantile({0}, 0.3, axis=AXIS, keepdims=KEPT)",
    "np.percentile({0}, 60, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
SORTS = (
    "np.sort({0}, axis=AXIS)", "np.argsort({0}, axis=AXIS, kind='stable')",
    "np.sort({0}, axis=-1)[..., -3:]", "np.sort({0}, axis=-1)[..., ::-1][..., :2]",
    "np.partition({0}, 0, axis=-1)[..., 0]", "np.argsort({0}, axis=-1, kind='stable')[..., :4]",
    "np.take_along_axis({0}, np.argsort({0}, axis=AXIS, kind='stable'), axis=AXIS)",
    "np.take_along_axis({0}, np.argmax({0}, axis=AXIS, keepdims=True), axis=AXIS)",
)  # fmt: skip
SCANS = (
    "np.cumsum({0}, axis=AXIS)", "np.cumsum({0})", "np.add.accumulate({0}, axis=AXIS)",
    "np.cumprod({0}, axis=AXIS)", "np.maximum.accumulate({0}, axis=AXIS)",
    "np.minimum.accumulate({0}, axis=AXIS)", "np.cumsum({0}, axis=AXIS, dtype='float64')",
    "np.diff({0}, axis=AXIS)", "np.cumsum({0}[..., ::-1], axis=-1)[..., ::-1]",
)  # fmt: skip
SHIFTED = "np.exp({2})"
CHAINS = (
    ("np.max({0}, axis=AXIS, keepdims=True)", "{0} - {1}", SHIFTED),
    ("np.max({0}, axis=AXIS, keepdims=True)", "{0} - {1}"),
    ("np.max({0}, axis=AXIS, keepdims=True)", "np.where({0} == {1}, {0}, 0.0)"),
    ("np.mean({0}, axis=AXIS, keepdims=True)", "{0} - {1}"),
    ("np.mean({0}, axis=AXIS, keepdims=True)", "{0} - {1}", "{2} ** 2"),
    ("np.mean({0} * {0}, axis=AXIS, keepdims=True)", "{0} / np.sqrt({1} + 1e-5)"),
    ("np.sum({0}, axis=AXIS, keepdims=True)", "{0} / {1}"),
    ("np.abs({0})", "{1} + 1", "np.log({2})"),
    ("np.tanh({0})", "1 + {1}", "0.5 * {0} * {2}"),
    ("np.max(np.abs({0}), axis=AXIS, keepdims=True)", "{0} / {1}"),
)  # fmt: skip
"""Of floats, in several lines: what is done with a row before the next reduction."""
VIEWS = (
    "{0}.T", "{0}[..., ::-1]", "{0}[1:]", "{0}[::2]", "{0}[:, None]", "{0}[None]",
    "{0}.reshape(-1)", "np.swapaxes({0}, 0, -1)", "np.concatenate([{0}, {0}])",
    "np.stack([{0}, {0}], axis=-1)", "np.roll({0}, 2, axis=-1)", "np.flip({0})",
    "np.expand_dims({0}, -1)", "np.repeat({0}, 2, axis=0)", "np.tile({0}, 2)", "{0}[-1]",
    "np.moveaxis({0}, 0, -1)", "np.take({0}, np.arange({0}.shape[0]) // 2, axis=0)",
    "{0} * np.arange({0}.shape[-1])", "{0} + np.arange({0}.shape[-1], dtype='float32')",
    "np.pad({0}, 1)", "np.broadcast_to({0}, (2, *{0}.shape))", "{0}.reshape({0}.shape[0], -1)",
    "np.squeeze({0})", "{0}[..., 0]", "{0}[..., :3]", "{0}[..., ::-2]", "{0}[::-1, 1::3]",
    "{0}[..., -1:0:-1]", "{0}[..., 3:3]",
    "np.rot90({0})", "np.array_split({0}, 2)[0]", "np.vstack([{0}, {0}])", "np.hstack([{0}, {0}])",
    "np.ravel({0})", "np.diag({0})", "np.atleast_2d({0})", "np.column_stack([{0}, {0}])",
    "np.lib.stride_tricks.sliding_window_view({0}, 3, axis=-1)",
)  # fmt: skip
MATRICES = (
    "np.tril({0})", "np.triu({0}, 1)",
    "np.where(np.arange({0}.shape[-2])[:, None] >= np.arange({0}.shape[-1]), {0}, -np.inf)",
    "np.where(np.arange({0}.shape[-2])[:, None] >= np.arange({0}.shape[-1]), {0}, 0)",
    "np.where(np.arange({0}.shape[-2])[:, None] - np.arange({0}.shape[-1]) < 5, {0}, -np.inf)",
)  # fmt: skip
"""Of arrays of two dimensions or more."""
PRODUCTS = (
    "{0} @ np.swapaxes({1}, -1, -2)", "{0} @ {1}", "np.swapaxes({0}, -1, -2) @ {1}",
    "np.einsum('...ij,...kj->...ik', {0}, {1})", "np.einsum('ij,ij->i', {0}, {1})",
    "np.vecdot({0}, {1})", "np.einsum('ij,jk->k', {0}, {1})", "np.tensordot({0}, {1}, 1)",
    "np.einsum('ii,ij->j', {0}, {1})", "np.einsum('ij,jj->i', {0}, {1})",
    "np.einsum('ij,ji', {0}, {1})", "np.einsum('i,j->ij', {0}, {1})",
    "np.einsum('ijk,ik->ij', {0}, {1})", "np.einsum('ij,kj->jik', {0}, {1})",
    "np.inner({0}, {1})", "np.outer({0}, {1})", "np.einsum('ii,i->i', {0}, {1})",
    "np.dot({0}, {1})", "np.convolve({0}, {1})",
)  # fmt: skip
EINSUMS = (
    "np.einsum('ii->i', {0})", "np.einsum('ii', {0})", "np.einsum('ij->j', {0})",
    "np.einsum('...i->...', {0})", "np.einsum('ijj->i', {0})", "np.einsum('iij->ji', {0})",
    "np.trace({0})", "np.diagonal({0})",
)  # fmt: skip
"""Of one array, with letters that are met twice."""
GATHERS = (
    "{0}[np.where({1} > 0, 0, -1)]", "np.take({0}, np.abs({1}) % {0}.shape[0], axis=0)",
    "{0}[{1} % {0}.shape[0]]", "np.take({0}, {1} % {0}.shape[-1], axis=-1)",
    "{0}[..., {1} % {0}.shape[-1]]", "{0}[np.clip({1}, -{0}.shape[0], {0}.shape[0] - 1)]",
    "np.take_along_axis({0}, {1} % {0}.shape[-1], axis=-1)",
    "np.take_along_axis({0}, {1} % {0}.shape[0], axis=0)",
    "np.where({1} > 0, {0}[{1} % {0}.shape[0]], 0)",
)  # fmt: skip
"""Of an array and of whole numbers."""
