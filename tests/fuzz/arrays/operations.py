"""The lines that random functions are made of, by what they take."""

from __future__ import annotations

CONSTANT = "(np.random.default_rng(3).integers(-8, 9, {0}.shape) / 4).astype('float32')"
"""An array that stands in the function, of numbers that all floats hold exactly."""
ROW = CONSTANT.replace(".shape", ".shape[-1:]")
WHOLE_ROW = "np.random.default_rng(4).integers(-3, 9, {0}.shape[-1:])"

ANY = (
    "{0} == {0}", "np.abs({0})", "np.sign({0})", "np.square({0})", "{0} * {0}", "{0} > 1",
    "{0} != 0", "np.where({0} > 0, {0}, 0)", "np.clip({0}, 0, 3)", "{0} + {0}", "{0} * 2",
    "{0} + 1", "3 - {0}", "np.maximum({0}, 1)", "np.minimum({0}, 2)", "{0}.astype('float32')",
    "{0}.astype('float64')", "{0} / 7", "2 / (np.abs({0}) + 1)", "np.logical_not({0})",
    "np.zeros_like({0}) + {0}", "np.full_like({0}, 3) * {0}", "np.isclose({0}, 1)",
    "np.absolute({0})", "np.multiply({0}, 2)", "np.greater({0}, 1)", "np.less({0}, 1)",
    "np.equal({0}, 0)", "np.not_equal({0}, 0)", "np.greater_equal({0}, 1)",
    "np.less_equal({0}, 0)", "np.divide({0}, 3)", "np.asarray({0}) * 2", "np.array({0}) + 1",
    "np.asanyarray({0}) + 1", "np.ascontiguousarray({0})", "np.asfortranarray({0})",
    "np.copy({0})", "{0}.copy()", "np.astype({0}, 'float32')", "np.ones_like({0}) + {0}",
    "np.piecewise({0}, [{0} > 1, {0} < 1], [2, 3, 0])",
    "np.around({0}, 1)",
    "np.full({0}.shape, 2.5, 'float32') * {0}", "np.zeros({0}.shape, 'int32') + {0}",
    "np.ones({0}.shape[-1:], 'int8') * {0}", "np.shape({0})[0] + {0}", "np.size({0}) * {0}",
    "np.ndim({0}) * {0}", "{0}.clip(0, 2)", "np.reshape({0}, {0}.shape[::-1])",
    "np.searchsorted([-1, 0, 2, 5], {0})", "np.digitize({0}, [-2, 0, 1])",
    "np.digitize({0}, [3, 1, 0], right=True)", "np.power({0}, 2)", "np.empty_like({0}) * 0 == 1",
    "np.interp({0}, [-2, 0, 1], [0.5, 4, -1])", "np.isin({0}, [2, 0, 1])",
    "np.histogram({0}, [-2, 0, 1, 3])[0]", "np.histogram({0}, 4, (-2, 2))[0]",
    "[u := {0}.copy(), np.putmask(u, {0} > 1, [2, 0, 1]), u][-1]",
    "[u := {0}.copy(), np.place(u, {0} > 0, [3, 1]), u][-1]",
    "[u := {0}.copy(), np.copyto(u, 2, where={0} < 1), u][-1]",
    "[u := {0}.copy(), np.put(u, [1, 0], [3, 1]), u][-1]",
    "[u := {0}.copy(), u.put([0, -1], [3, 1]), u][-1]",
    "[u := {0}.copy(), np.put_along_axis(u, np.argsort({0}, -1)[..., :1], 2, -1), u][-1]",
    "np.histogram2d({0}.ravel(), {0}.ravel()[::-1], [[-1, 0, 2], [-2, 1]])[0]",
    "[u := {0}.copy(), np.put(u, [3, -1, 5, 3], [1, 0], 'wrap'), u][-1]",
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
    "np.sinh(np.tanh({0}))", "np.arcsin(np.tanh({0}) / 2)", "np.tan(np.tanh({0}))",
    "np.log10(np.abs({0}) + 1)", "np.arcsinh({0})", "np.heaviside({0}, 0.5)",
    "np.signbit(np.nan_to_num({0}))",
    "np.select([{0} > 1, {0} < 0], [{0}, -{0}], 0.5)",
    "{0}.round()", "np.negative({0})", "np.arccos(np.tanh({0}) / 2)", "np.arccosh(np.abs({0}) + 2)",
    "np.arctanh(np.tanh({0}) / 2)", "np.deg2rad({0})", "np.degrees({0})", "np.radians({0})",
    "np.rad2deg({0})", "np.fabs({0})", "np.fix({0})", "np.floor_divide({0}, 3.0)",
    "np.remainder({0}, 3.0)", "np.power(np.abs({0}), 0.5)", "np.positive({0})",
    "np.piecewise({0}, [{0} > 0], [lambda x: x * 2, 0.5])", "np.float_power(np.abs({0}), 0.5)",
    "np.searchsorted([-1.5, 0.0, 0.25, 2.0], {0}, side='right')", "np.sinc({0})",
    "np.vander({0}, 3)", "np.modf({0})[0]", "np.modf({0})[1]", "np.frexp({0})[0]",
    "np.frexp({0})[1]", "np.ldexp({0}, 3)", "np.ldexp(*np.frexp({0}))", "np.divmod({0}, 3.0)[1]",
)  # fmt: skip
WHOLE = (
    "{0} // 3", "{0} % 4", "{0} // -2", "{0} % -3", "{0} & 6", "{0} | 1", "{0} ^ 5", "{0} << 1",
    "{0} >> 1", "~{0}", "{0}.astype('int8')", "{0}.astype('uint8')", "{0}.astype('int64')",
    "{0}.astype('int32')", "{0}.astype('bool')", "{0} ** 2", "np.fmod({0}, 3)", "{0} * 1.5",
    "np.sqrt(np.abs({0}) + 1)", "{0} * np.float32(0.5)", "{0}.astype('int16')",
    "{0}.astype('uint32')", "{0}.astype('float16')", "-{0}",
    "{0} << 40", "{0} >> 40",
    "np.invert({0})", "np.bitwise_and({0}, 6)", "np.bitwise_or({0}, 1)", "np.bitwise_xor({0}, 5)",
    "np.left_shift({0}, 1)", "np.right_shift({0}, 1)", "np.floor_divide({0}, 3)",
    "np.remainder({0}, -3)", "np.negative({0})", "np.positive({0})", "np.fix({0})",
    "np.gcd({0}, 12)", "np.lcm({0}, 4)", "np.modf({0} / 4)[0]", "np.frexp({0} / 7)[1]",
    "np.choose({0} % 3, [{0}, 2, 1])", "{0}.choose([1.5, {0}, 3], mode='wrap')",
    "np.choose({0}, [1.5, 2, -1], mode='clip')", "np.ldexp(1.5, {0} % 8)",
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
    "np.multiply({0}, {1})", "np.equal({0}, {1})", "np.not_equal({0}, {1})", "np.less({0}, {1})",
    "np.less_equal({0}, {1})", "np.greater({0}, {1})", "np.greater_equal({0}, {1})",
    "np.isclose({0}, {1})", "np.allclose({0}, {1})", "np.meshgrid({0}, {1})[0]",
    "np.meshgrid({0}, {1}, indexing='ij')[1]", "np.concatenate([{0}, {1}], axis=-1)",
    "np.stack([{0}, {1}])", "np.append({0}, {1})", "np.block([[{0}], [{1}]])",
    "np.piecewise({0}, [{0} > {1}], [1, 0])", "np.add.outer({0}, {1})",
    "np.searchsorted(np.sort({0}), {1})", "np.digitize({0}, np.sort({1}))",
    "np.searchsorted(np.sort({0}), {1}, side='right')", "np.array_equal({0}, {1})",
    "np.broadcast_arrays({0}, {1})[1]",
)  # fmt: skip
"""Of two arrays that are broadcast together; those of two that are no truth values follow."""
NUMBERS = ("{0} - {1}", "{0} - {1}", "({0} - {1}) ** 2", "{0} - 2 * {1}")
FLOATS = (
    "{0} / {1}", "np.exp({0}) * {1}", "np.hypot({0}, {1})", "{0} * np.exp({1})",
    "np.arctan2({0}, {1})", "np.copysign({0}, {1})", "{0} / np.sqrt({1})",
    "np.abs({0}) ** np.sign({1})", "{0} * np.sqrt({1} + 1)",
    "np.where({0} == {1}, {0}, -np.inf)", "np.where({0} < {1}, -np.inf, {0})", "np.fmin({0}, {1})",
    "np.subtract({0}, {1})",
    "np.divide({0}, {1})", "np.power(np.abs({0}), np.sign({1}))",
    "np.float_power(np.abs({0}), np.clip({1}, -2, 2))",
)  # fmt: skip
LOGARITHMS = ("np.logaddexp({0}, {1})", "np.logaddexp2({0}, {1})")
"""Of floats; they add up."""
WHOLES = (
    "{0} // {1}", "{0} % {1}", "np.fmod({0}, {1})", "{0} & {1}",
    "{0} | {1}", "{0} ^ {1}",
    "{0} << {1}", "{0} >> {1}", "{0} >> ({1} & 7)",
    "np.bitwise_and({0}, {1})", "np.bitwise_or({0}, {1})", "np.bitwise_xor({0}, {1})",
    "np.left_shift({0}, {1})", "np.right_shift({0}, {1})",
    "np.gcd({0}, {1})", "np.lcm({0}, {1})", "np.divmod({0}, {1})[0]",
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
    "np.bitwise_and({0}, {1})", "np.bitwise_xor({0}, {1})",
    "np.amax({0}, axis=AXIS, keepdims=KEPT)", "np.amin({0}, axis=AXIS, keepdims=KEPT)",
    "np.maximum.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "np.minimum.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "np.logical_and.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "np.logical_or.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "{0}.max(axis=AXIS, keepdims=KEPT)", "{0}.any(axis=AXIS)", "{0}.all(axis=AXIS)",
)  # fmt: skip
POSITIONS = (
    "np.argmax({0}, axis=AXIS)", "np.argmin({0}, axis=AXIS, keepdims=KEPT)",
    "np.unravel_index(np.argmax({0}), {0}.shape)[-1]",
    "np.nanargmax(np.where(np.arange({0}.shape[-1]) > 0, {0}, 1), axis=-1)",
    "np.nanargmin(np.where(np.arange({0}.shape[-1]) > 0, {0}, 1), axis=-1, keepdims=KEPT)",
)  # fmt: skip
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
    "{0}.argmax(axis=AXIS)", "{0}.argmin(axis=AXIS)",
    "np.add.reduce({0}, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
SPREADS = (
    "np.var({0}, axis=AXIS, keepdims=KEPT)", "{0}.std(axis=AXIS, keepdims=KEPT)",
    "np.var({0}, axis=AXIS, keepdims=KEPT, ddof=1)", "{0}.std(axis=AXIS, keepdims=KEPT, ddof=1)",
    "np.var({0}, axis=AXIS, keepdims=KEPT, ddof=2)",
    "np.nanvar({0}, axis=AXIS, keepdims=KEPT)",
    "np.nanstd({0}, axis=AXIS, keepdims=KEPT)", "np.std({0}, axis=AXIS, keepdims=KEPT)",
    "{0}.var(axis=AXIS)",
)  # fmt: skip
FACTORS = (
    "np.prod({0}, axis=AXIS, keepdims=KEPT)", "np.multiply.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "{0}.prod(axis=AXIS)", "np.nanprod({0}, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
FLOAT_FOLDS = (
    "np.logaddexp.reduce({0}, axis=AXIS, keepdims=KEPT)",
    "np.nansum({0}, axis=AXIS, keepdims=KEPT)", "np.nanmax({0}, axis=AXIS, keepdims=KEPT)",
    "np.nanmean({0}, axis=AXIS, keepdims=KEPT)", "np.nanmin({0}, axis=AXIS, keepdims=KEPT)",
    "np.logaddexp.accumulate({0}, axis=AXIS)", "np.nancumsum({0}, axis=AXIS)",
    "np.linalg.norm({0}, axis=AXIS, keepdims=KEPT)", "np.median({0}, axis=AXIS, keepdims=KEPT)",
    "np.quantile({0}, 0.3, axis=AXIS, keepdims=KEPT)",
    "np.nanmedian({0}, axis=AXIS, keepdims=KEPT)",
    "np.percentile({0}, 60, axis=AXIS, keepdims=KEPT)",
    "np.linalg.vector_norm({0}, axis=AXIS, keepdims=KEPT)", "np.nancumprod({0}, axis=AXIS)",
    "np.linalg.norm({0}, ord=1, axis=AXIS, keepdims=KEPT)",
    "np.linalg.norm({0}, ord=np.inf, axis=AXIS, keepdims=KEPT)",
)  # fmt: skip
SORTS = (
    "np.sort({0}, axis=AXIS)", "np.argsort({0}, axis=AXIS, kind='stable')",
    "np.sort({0}, axis=-1)[..., -3:]", "np.sort({0}, axis=-1)[..., ::-1][..., :2]",
    "np.partition({0}, 0, axis=-1)[..., 0]", "np.argsort({0}, axis=-1, kind='stable')[..., :4]",
    "np.take_along_axis({0}, np.argsort({0}, axis=AXIS, kind='stable'), axis=AXIS)",
    "np.take_along_axis({0}, np.argmax({0}, axis=AXIS, keepdims=True), axis=AXIS)",
    "np.take_along_axis({0}, np.argpartition({0}, 0, axis=-1)[..., :1], axis=-1)",
    "{0}.argsort(axis=AXIS, stable=True)", "np.flip(np.sort({0}, axis=AXIS), axis=AXIS)",
    "np.partition({0}, (0, 1), axis=-1)[..., :2]",
    "np.take_along_axis({0}, {0}.argpartition(0, axis=-1)[..., :1], axis=-1)",
)  # fmt: skip
SCANS = (
    "np.cumsum({0}, axis=AXIS)", "np.cumsum({0})", "np.add.accumulate({0}, axis=AXIS)",
    "np.cumprod({0}, axis=AXIS)", "np.maximum.accumulate({0}, axis=AXIS)",
    "np.minimum.accumulate({0}, axis=AXIS)", "np.cumsum({0}, axis=AXIS, dtype='float64')",
    "np.diff({0}, axis=AXIS)", "np.cumsum({0}[..., ::-1], axis=-1)[..., ::-1]",
    "np.cumulative_sum({0}, axis=AXIS)", "np.cumulative_prod({0}, axis=AXIS)",
    "np.multiply.accumulate({0}, axis=AXIS)", "{0}.cumsum(axis=AXIS)", "{0}.cumprod(axis=AXIS)",
    "np.cumulative_sum({0}, axis=AXIS, include_initial=True)",
    "np.gradient({0}, axis=AXIS)", "np.trapezoid({0}, axis=AXIS)",
    "np.gradient({0}, 0.5, axis=AXIS, edge_order=2)", "np.trapezoid({0}, dx=0.5, axis=AXIS)",
    "np.diff({0}, n=2, axis=AXIS)", "np.ediff1d({0})",
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
    "np.transpose({0})", "np.permute_dims({0}, range({0}.ndim)[::-1])", "np.reshape({0}, -1)",
    "np.hsplit({0}, [1])[0]", "np.vsplit({0}, [1])[-1]", "np.split({0}, [1], axis=-1)[1]",
    "np.unstack({0})[0]", "np.dstack([{0}, {0}])", "np.append({0}, {0}, axis=-1)",
    "np.concat([{0}, {0}], axis=-1)", "np.fliplr({0})", "np.flipud({0})", "np.atleast_1d({0})",
    "np.atleast_3d({0})", "np.block([{0}, {0}])", "{0}[np.ix_([0, -1])]",
    "{0}[np.ix_([0, -1], [0])]", "np.meshgrid({0}, {0})[0]", "np.indices({0}.shape)[0] * {0}",
    "np.linspace(0, 3, {0}.shape[-1]) + {0}", "np.pad({0}, 1, mode='reflect')",
    "np.pad({0}, 1, mode='edge')", "np.pad({0}, (0, 2), mode='wrap')",
    "np.pad({0}, 2, mode='symmetric')", "{0}.swapaxes(0, -1)", "{0}.squeeze()", "{0}.repeat(2, 0)",
    "{0}.take([0, -1], axis=-1)", "{0}.flatten()", "{0}.transpose()", "np.empty((0, 3), 'int8')",
    "np.roll({0}, (1, 2), axis=(0, -1))", "np.tile({0}, (2, 1))", "np.repeat({0}, 3)",
    "np.flip({0}, axis=-1)", "np.gradient({0})[0]", "np.delete({0}, 0, axis=-1)",
    "np.insert({0}, 1, 2, axis=-1)", "np.rollaxis({0}, -1)",
    "np.resize({0}, (3, 5))", "np.resize({0}, 7)",
)  # fmt: skip
MATRICES = (
    "np.tril({0})", "np.triu({0}, 1)",
    "np.where(np.arange({0}.shape[-2])[:, None] >= np.arange({0}.shape[-1]), {0}, -np.inf)",
    "np.where(np.arange({0}.shape[-2])[:, None] >= np.arange({0}.shape[-1]), {0}, 0)",
    "np.where(np.arange({0}.shape[-2])[:, None] - np.arange({0}.shape[-1]) < 5, {0}, -np.inf)",
    "np.eye({0}.shape[-2], {0}.shape[-1], 1) * {0}", "np.identity({0}.shape[-1], 'float32') + {0}",
    "np.tri({0}.shape[-2], {0}.shape[-1]) * {0}", "np.matrix_transpose({0})",
    "np.linalg.matrix_transpose({0})", "np.linalg.diagonal({0})", "{0}.diagonal()",
    "np.rot90({0}, -1)", "np.diag({0}, 1)", "np.rot90({0}, 2)",
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
    "np.matmul({0}, {1})", "np.matvec({0}, {1})", "np.vecmat({0}, {1})", "np.vdot({0}, {1})",
    "np.linalg.matmul({0}, {1})", "np.linalg.outer({0}, {1})", "np.linalg.vecdot({0}, {1})",
    "np.linalg.tensordot({0}, {1}, axes=1)", "np.kron({0}, {1})", "np.correlate({0}, {1})",
    "np.correlate({0}, {1}, 'full')", "np.convolve({0}, {1}, 'same')", "{0}.dot({1})",
    "np.trapezoid({0}, {1})", "np.polyval({0}[:3], {1})",
    "np.einsum('ij,jk,j->ik', {0}, {0}.T, {1})", "np.einsum('ij,kj,ik->ik', {0}, {1}, {0} @ {1}.T)",
    "np.einsum('ij,kj,kl->il', {0}, {1}, {1})", "np.cross({0}, {1})", "np.linalg.cross({0}, {1})",
    "np.linalg.multi_dot([{0}, {0}.T, {1}])", "np.linalg.matrix_power({0} @ {1}.T, 2)",
)  # fmt: skip
EINSUMS = (
    "np.einsum('ii->i', {0})", "np.einsum('ii', {0})", "np.einsum('ij->j', {0})",
    "np.einsum('...i->...', {0})", "np.einsum('ijj->i', {0})", "np.einsum('iij->ji', {0})",
    "np.trace({0})", "np.diagonal({0})",
    "np.linalg.trace({0})", "np.linalg.matrix_norm({0})", "{0}.trace()", "np.trace({0}, 1)",
    "np.linalg.norm({0}, ord=1)", "np.linalg.matrix_norm({0}, ord=np.inf)",
)  # fmt: skip
_DOMINANT = (
    "np.nan_to_num(np.tanh(({0} @ {0}.T) * 1.0)) + np.eye({0}.shape[0]) * (2 * {0}.shape[0])"
)
SYSTEMS = tuple(
    line.replace("A", _DOMINANT) for line in (
        "np.linalg.solve(A, {0})", "np.linalg.inv(A)", "np.linalg.slogdet(A)[1]",
        "np.linalg.det((A) / (2 * {0}.shape[0]))", "np.linalg.cholesky(A)", "np.linalg.qr(A)[1]",
        "np.linalg.eigvalsh(A)", "np.linalg.svdvals(A)", "np.linalg.pinv(A)",
        "np.linalg.lstsq(A, {0})[0]", "np.linalg.cond(A)", "np.linalg.norm(A, 2)",
        "np.linalg.eigh(A)[0]", "np.linalg.svd(A)[1]", "np.linalg.matrix_rank(A)",
        "np.polyfit(np.linspace(-1, 1, {0}.shape[0]), np.tanh(np.nan_to_num({0} * 1.0)), 1)",
    )
)  # fmt: skip
"""Of matrices whose diagonals outweigh their rows: others lose digits that nobody can bound."""
"""Of one array, with letters that are met twice."""
GATHERS = (
    "{0}[np.where({1} > 0, 0, -1)]", "np.take({0}, np.abs({1}) % {0}.shape[0], axis=0)",
    "{0}[{1} % {0}.shape[0]]", "np.take({0}, {1} % {0}.shape[-1], axis=-1)",
    "{0}[..., {1} % {0}.shape[-1]]", "{0}[np.clip({1}, -{0}.shape[0], {0}.shape[0] - 1)]",
    "np.take_along_axis({0}, {1} % {0}.shape[-1], axis=-1)",
    "np.take_along_axis({0}, {1} % {0}.shape[0], axis=0)",
    "np.where({1} > 0, {0}[{1} % {0}.shape[0]], 0)",
    "np.choose({1} % {0}.shape[0], {0})", "np.choose({1}, [{0}, 1], mode='wrap')",
)  # fmt: skip
"""Of an array and of whole numbers."""

_COPIED = "[u := {0}.copy(), np.%s, u][-1]"
SCATTERS = (
    *(_COPIED % text for text in (
        "add.at(u, np.abs({1}) % {0}.shape[0], 1)",
        "add.at(u, np.abs({1}) % {0}.shape[0], {0}[-1])",
        "add.at(u, (..., np.abs({1}) % {0}.shape[-1]), 2)",
        "add.at(u, (np.abs({1}) % {0}.shape[0], ..., 0), True)",
        "fill_diagonal(u, {0}[-1])", "fill_diagonal(u, 2)",
        "subtract.at(u, -1 - np.abs({1}) % {0}.shape[0], -3)",
        "multiply.at(u, np.abs({1}) % {0}.shape[0], -1)",
        "maximum.at(u, np.abs({1}) % {0}.shape[0], {0}[0])",
        "minimum.at(u, (..., np.abs({1}) % {0}.shape[-1]), 1)",
        "add.at(u, {0} > 1, 3)",
        "add.at(u[1:], np.abs({1}) % ({0}.shape[0] - 1), {0}[0])",
    )),
    "np.bincount(np.ravel(np.abs({1}) % 7), minlength=7)",
    "np.bincount(np.ravel({0} > 1), minlength=3)",
    "[u := np.zeros(7, 'float32'), np.add.at(u, np.abs({1}) % 7, 1.5), u][-1]",
    "[u := np.zeros((3, 5), int), np.add.at(u, (np.abs({1}) % 3, np.abs({1}) % 5), 1), u][-1]",
    "[u := np.ones(40, 'uint8'), np.add.at(u, np.abs({1}) % 40, np.abs({1})), u][-1]",
)  # fmt: skip
"""Of an array of numbers and of whole numbers: what goes to one place accumulates."""

CONSTANTS = (
    f"{{0}} + {CONSTANT}", f"{{0}} * {ROW}", f"np.maximum({{0}}, {ROW})", f"{{0}} < {CONSTANT}",
    f"np.where({CONSTANT} > 0, {{0}}, 0)", f"np.where({WHOLE_ROW} > 2, {{0}}, {ROW})",
    f"{{0}} // np.abs({WHOLE_ROW} * 2 + 1)", f"{{0}} * {WHOLE_ROW}.astype('int8')",
    f"{{0}} + {WHOLE_ROW}.astype('bool')", f"np.where({CONSTANT} == 0, {CONSTANT}, {{0}})",
    "{0}[..., np.random.default_rng(4).permutation({0}.shape[-1])]",
    "{0}[np.random.default_rng(4).integers(0, {0}.shape[0], 5)]",
    f"np.take_along_axis({{0}}, {WHOLE_ROW.replace('-1:', ':')} % 2, axis=-1)",
    f"np.take(np.array([0.5, -1.0, 3.25], 'float32'), {WHOLE_ROW} % 3) * {{0}}",
    f"np.concatenate([{{0}}, {CONSTANT}])", f"np.stack([{ROW}, {WHOLE_ROW}])",
    f"np.sort({ROW}) < {{0}}", "{0} + np.array([[0.5], [-1.5]], 'float32')",
    "{0} * np.asarray([True, False, True])", "np.array([1, 2, 4], 'uint8') + {0}",
    f"np.cumsum({WHOLE_ROW}) + {{0}}", f"{{0}} >= np.float16({ROW})",
    f"np.append({ROW}, {{0}})", f"np.searchsorted(np.sort({ROW}), {{0}})",
)  # fmt: skip
"""Of an array and of arrays that stand in the function."""
CONSTANT_SUMS = (
    f"{{0}} @ {ROW}", f"{CONSTANT} @ np.swapaxes({{0}}, -1, -2)",
    f"np.swapaxes({{0}}, -1, -2) @ {CONSTANT}",
    f"np.average({{0}}, axis=-1, weights={ROW} ** 2 + 1)",
    "{0} @ (np.random.default_rng(5).integers(-8, 9, ({0}.shape[-1], 24)) / 4).astype('float32')",
    f"np.sum({{0}} * {CONSTANT}, axis=-1)", f"np.einsum('...i,i->...', {{0}}, {ROW})",
    "np.convolve({0}, np.array([0.5, 1, -0.25], 'float32'))", "np.polyval([0.5, 2, 1], {0})",
    f"np.trapezoid({{0}}, np.cumsum({ROW} ** 2 + 1))", "np.kron({0}, np.array([1, -2, 4]))",
    f"np.gradient({{0}}, np.cumsum({ROW} ** 2 + 1), axis=-1)",
    f"np.mean({{0}}, axis=-1, where={ROW} > 0)", "np.correlate({0}, [1, 2, 0.5], 'same')",
    f"np.cumsum({{0}} * {ROW}, axis=-1)", f"np.outer({ROW}, {{0}})",
)  # fmt: skip
"""Those that add up."""
COVARIANCES = ("np.cov({0})", "np.corrcoef({0})", "np.cov({0}, rowvar=False, bias=True)")
WIDENING = (
    "np.degrees({0})", "np.radians({0})", "np.ldexp({0}, 3)", "np.ldexp(*np.frexp({0}))",
)  # fmt: skip
"""Those that give floats of 32 bits of bfloat16."""
EXCLUDED = {
    "erf": "it is SciPy's",
    "trapz": "NumPy has it no longer",
    "unwrap": "it jumps where differences are rounded to halves of a period",
}
"""Names that no line has, and why."""
