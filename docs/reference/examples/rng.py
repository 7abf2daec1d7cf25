"""Random numbers."""

import tile_api as tile
import tile_api.language as T


def rng_init():
    """`T.rng_init` starts the generator of each thread, `T.rng_rand` draws bits.

    `T.rng_rand_float` draws floats. The numbers are the same on every target.
    """

    @tile.jit
    def drawn(seed: T.int32):
        bits = T.empty((64,), "uint32")
        floats = T.empty((2, 64), "float32")
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            T.rng_init(seed)
            bits[tx] = T.rng_rand()
            floats[0, tx] = T.rng_rand_float()
            floats[1, tx] = T.rng_rand_float(dist="normal")
        return bits, floats

    bits, floats = drawn(7)
    assert len(set(bits)) == 64
    assert ((floats[0] > 0) & (floats[0] <= 1)).all()
    assert abs(floats[1].mean()) < 0.5
    assert (drawn(7)[0] == bits).all()
    assert (drawn(8)[0] != bits).all()
