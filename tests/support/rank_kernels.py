"""Kernels across ranks that are right; `test_rank_mistakes` changes a line of each."""

import tile_api.language as T

M, N, K = 8, 8, 16
R = T.dynamic("R")


@T.prim_func
def gather_by_pull(
    X: T.Tensor((M, K), "float32"),
    B: T.Tensor((K, N), "float32"),
    C: T.Tensor((R, M, N), "float32"),
    A: T.Symmetric((M, K), "float32"),
    F: T.Signals((R,)),
):
    """C[p] = X of rank p @ B: block 0 publishes X, all blocks read it where it is."""
    with T.Kernel(2, threads=32) as bx:
        a = T.alloc_shared((M, K), "float32")
        b = T.alloc_shared((K, N), "float32")
        c = T.alloc_fragment((M, N), "float32")
        T.copy(B, b)
        if bx == 0:
            T.copy(X, a)
            T.copy(a, A)
            for s in T.serial(T.ranks()):
                T.signal(F.at((T.rank() + s) % T.ranks())[T.rank()])
        for s in T.serial(T.ranks()):
            p = (T.rank() + s) % T.ranks()
            if p % 2 == bx:
                T.wait_signal(F[p], 1)
                T.copy(A.at(p)[:, :], a)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C[p, :, :])


@T.prim_func
def gather_by_push(
    X: T.Tensor((M, K), "float32"),
    B: T.Tensor((K, N), "float32"),
    C: T.Tensor((R, M, N), "float32"),
    W: T.Symmetric((R, M, K), "float32"),
    F: T.Signals((R,)),
):
    """C[p] = X of rank p @ B: each rank puts its X into everybody's workspace."""
    with T.Kernel(2, threads=32) as bx:
        a = T.alloc_shared((M, K), "float32")
        b = T.alloc_shared((K, N), "float32")
        c = T.alloc_fragment((M, N), "float32")
        if bx == 0:
            T.copy(X, a)
            for s in T.serial(T.ranks()):
                p = (T.rank() + s) % T.ranks()
                T.copy(a, W.at(p)[T.rank(), :, :])
                T.signal(F.at(p)[T.rank()])
        else:
            T.copy(B, b)
            for s in T.serial(T.ranks()):
                p = (T.rank() + s) % T.ranks()
                T.wait_signal(F[p], 1)
                T.copy(W[p, :, :], a)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C[p, :, :])


@T.prim_func
def reduced_in_two_shots(
    X: T.Tensor((R, K), "float32"),
    Y: T.Tensor((R, K), "float32"),
    W: T.Symmetric((R, K), "float32"),
    S: T.Symmetric((R, K), "float32"),
    F: T.Signals((2,)),
):
    """Y = sum of X over ranks: rank p adds up row p of all, and sends it to all."""
    with T.Kernel(1, threads=32):
        row = T.alloc_fragment((K,), "float32")
        total = T.alloc_fragment((K,), "float32")
        for s in T.serial(T.ranks()):
            p = (T.rank() + s) % T.ranks()
            T.copy(X[p, :], row)
            T.copy(row, W.at(p)[T.rank(), :])
            T.signal(F.at(p)[0])
        T.wait_signal(F[0], T.ranks())
        T.clear(total)
        for p in T.serial(T.ranks()):
            T.copy(W[p, :], row)
            for i in T.Parallel(K):
                total[i] += row[i]
        for s in T.serial(T.ranks()):
            p = (T.rank() + s) % T.ranks()
            T.copy(total, S.at(p)[T.rank(), :])
            T.signal(F.at(p)[1])
        T.wait_signal(F[1], T.ranks())
        for p in T.serial(T.ranks()):
            T.copy(S[p, :], row)
            T.copy(row, Y[p, :])


@T.prim_func
def ring(
    X: T.Tensor((K,), "float32"),
    Y: T.Tensor((K,), "float32"),
    W: T.Symmetric((2, K), "float32"),
    F: T.Signals((2,)),
    C: T.Signals((2,)),
):
    """Y = sum of X over ranks: rows travel around, through two slots with credits."""
    with T.Kernel(1, threads=32):
        row = T.alloc_shared((K,), "float32")
        total = T.alloc_fragment((K,), "float32")
        T.copy(X, row)
        T.copy(X, total)
        for s in T.serial(T.ranks() - 1):
            after = (T.rank() + 1) % T.ranks()
            before = (T.rank() + T.ranks() - 1) % T.ranks()
            if s >= 2:
                T.wait_signal(C[s % 2], s // 2)
            T.copy(row, W.at(after)[s % 2, :])
            T.signal(F.at(after)[s % 2])
            T.wait_signal(F[s % 2], s // 2 + 1)
            T.copy(W[s % 2, :], row)
            T.signal(C.at(before)[s % 2])
            for i in T.Parallel(K):
                total[i] += row[i]
        T.copy(total, Y)


@T.prim_func
def exchanged(
    X: T.Tensor((K,), "float32"),
    Y: T.Tensor((K,), "float32"),
    W: T.Symmetric((K,), "float32"),
    F: T.Signals((2,)),
):
    """Y = 3 times around by one rank: each round between two barriers of all ranks."""
    with T.Kernel(2, threads=32) as bx:
        row = T.alloc_fragment((K // 2,), "float32")
        T.copy(X[bx * (K // 2)], row)
        for _ in T.serial(3):
            T.copy(row, W[bx * (K // 2)])
            T.barrier_ranks(F)
            T.copy(W.at((T.rank() + 1) % T.ranks())[bx * (K // 2)], row)
            T.barrier_ranks(F)
        T.copy(row, Y[bx * (K // 2)])


@T.prim_func
def added_up(
    X: T.Tensor((K,), "float32"),
    Y: T.Tensor((K,), "float32"),
    W: T.Symmetric((K,), "float32"),
    F: T.Signals((1,)),
):
    """Y = sum of X over ranks: all add into the tensor of rank 0."""
    with T.Kernel(1, threads=32):
        row = T.alloc_fragment((K,), "float32")
        T.copy(X, row)
        T.atomic_add(W.at(0)[:], row)
        T.barrier_ranks(F)
        T.copy(W.at(0), row)
        T.copy(row, Y)
