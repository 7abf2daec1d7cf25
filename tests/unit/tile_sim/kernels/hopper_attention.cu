#include "tile.h"

// O = softmax(Q K') V of one head of 64 columns, on Hopper: 64 rows of Q for each of two groups of
// consumers, tiles of 64 rows of K and V in rings of two. P is multiplied from registers while K's
// next tile is on its way. All maps have boxes of 64 x 64 and a swizzle of 128 bytes.
TILE_KERNEL(384, 1) void hopper_attention(TILE_TENSOR_MAP(Q), TILE_TENSOR_MAP(K), TILE_TENSOR_MAP(V), TILE_TENSOR_MAP(O), int tiles) {
  const int thread = threadIdx.x;
  const int bx = blockIdx.x;
  tile::sptr<half_t> Q_shared = tile::smem<half_t>(0, 8192);
  tile::sptr<half_t> K_shared = tile::smem<half_t>(16384, 8192);
  tile::sptr<half_t> V_shared = tile::smem<half_t>(32768, 8192);
  tile::sptr<tile::u64> q_full = tile::smem<tile::u64>(49152, 1);
  tile::sptr<tile::u64> k_full = tile::smem<tile::u64>(49160, 2);
  tile::sptr<tile::u64> k_empty = tile::smem<tile::u64>(49176, 2);
  tile::sptr<tile::u64> v_full = tile::smem<tile::u64>(49192, 2);
  tile::sptr<tile::u64> v_empty = tile::smem<tile::u64>(49208, 2);
  if (thread == 0) {
    tile::mbarrier_init(q_full + 0, 1);
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      tile::mbarrier_init(k_full + i, 1);
      tile::mbarrier_init(k_empty + i, 8);
      tile::mbarrier_init(v_full + i, 1);
      tile::mbarrier_init(v_empty + i, 8);
    }
    tile::fence_mbarrier_init();
  }
  tile::sync();
  if (thread >= 256) {
    tile::registers_decrease<24>();
    if (thread == 256) {
      tile::mbarrier_arrive_expect_tx(q_full + 0, 16384);
      tile::tma_load<2>(Q_shared + 0, Q, q_full + 0, 0, bx * 128);  // copy Q
      tile::tma_load<2>(Q_shared + 4096, Q, q_full + 0, 0, bx * 128 + 64);  // copy Q too
      TILE_NO_UNROLL
      for (int t = 0; t < tiles; ++t) {
        const int slot = t & 1;
        const int phase = (t >> 1 & 1) ^ 1;
        tile::mbarrier_wait(k_empty + slot, phase);
        tile::mbarrier_arrive_expect_tx(k_full + slot, 8192);
        tile::tma_load<2>(K_shared + slot * 4096, K, k_full + slot, 0, t * 64);  // copy K
        tile::mbarrier_wait(v_empty + slot, phase);
        tile::mbarrier_arrive_expect_tx(v_full + slot, 8192);
        tile::tma_load<2>(V_shared + slot * 4096, V, v_full + slot, 0, t * 64);  // copy V
      }
    }
  } else {
    tile::registers_increase<240>();
    const int group = thread >> 7;
    const int tid = thread & 127;
    tile::frag<float, 32> O_local;
    tile::frag<float, 32> S_local;
    tile::frag<half_t, 32> P_local;
    tile::frag<float, 2> row_max;
    tile::frag<float, 2> row_sum;
    TILE_UNROLL
    for (int i = 0; i < 32; ++i) {
      O_local[i] = 0.0f;
    }
    TILE_UNROLL
    for (int h = 0; h < 2; ++h) {
      row_max[h] = -TILE_INFINITY;
      row_sum[h] = 0.0f;
    }
    tile::mbarrier_wait(q_full + 0, 0);
    TILE_NO_UNROLL
    for (int t = 0; t < tiles; ++t) {
      const int slot = t & 1;
      const int phase = t >> 1 & 1;
      tile::mbarrier_wait(k_full + slot, phase);
      tile::wgmma_fence();  // fence before scores
      TILE_UNROLL
      for (int kk = 0; kk < 4; ++kk) {
        if (kk == 0) {
          tile::wgmma_ss_set<64, 0, 0>(S_local + 0, tile::wgmma_operand<128, 16, 1024>(Q_shared + 0, group * 512), tile::wgmma_operand<128, 16, 1024>(K_shared + 0, slot * 512));  // scores
        } else {
          tile::wgmma_ss<64, 0, 0>(S_local + 0, tile::wgmma_operand<128, 16, 1024>(Q_shared + 0, group * 512 + kk * 2), tile::wgmma_operand<128, 16, 1024>(K_shared + 0, slot * 512 + kk * 2));  // more scores
        }
      }
      tile::wgmma_commit();
      tile::wgmma_wait<1>();  // the products of the last tile
      if (t > 0 && (tid & 31) == 0) {
        tile::mbarrier_arrive(v_empty + (slot ^ 1));  // release V
      }
      tile::wgmma_wait<0>();  // the scores
      if ((tid & 31) == 0) {
        tile::mbarrier_arrive(k_empty + slot);  // release K
      }
      TILE_UNROLL
      for (int h = 0; h < 2; ++h) {
        float m = row_max[h];
        TILE_UNROLL
        for (int j = 0; j < 8; ++j) {
          m = tile::max(m, tile::max(float(S_local[j * 4 + h * 2]), float(S_local[j * 4 + h * 2 + 1])));  // read scores
        }
        m = tile::max(m, tile::shfl_xor(m, 1));
        m = tile::max(m, tile::shfl_xor(m, 2));
        const float scale = tile::exp2(float(row_max[h]) - m);
        float sum = 0.0f;
        TILE_UNROLL
        for (int j = 0; j < 8; ++j) {
          TILE_UNROLL
          for (int e = 0; e < 2; ++e) {
            const float p = tile::exp2(float(S_local[j * 4 + h * 2 + e]) - m);
            P_local[j * 4 + h * 2 + e] = tile::cast<half_t>(p);  // probabilities
            sum = sum + p;
            O_local[j * 4 + h * 2 + e] = O_local[j * 4 + h * 2 + e] * scale;  // rescale
          }
        }
        row_max[h] = m;
        row_sum[h] = row_sum[h] * scale + sum;
      }
      tile::mbarrier_wait(v_full + slot, phase);
      tile::wgmma_fence();  // fence before products
      TILE_UNROLL
      for (int kk = 0; kk < 4; ++kk) {
        tile::wgmma_rs<64, 1>(O_local + 0, P_local + kk * 8, tile::wgmma_operand<128, 8192, 1024>(V_shared + 0, slot * 512 + kk * 128));  // products
      }
      tile::wgmma_commit();
    }
    tile::wgmma_wait<0>();  // the last products
    TILE_UNROLL
    for (int h = 0; h < 2; ++h) {
      float sum = row_sum[h];
      sum = sum + tile::shfl_xor(sum, 1);
      sum = sum + tile::shfl_xor(sum, 2);
      row_sum[h] = 1.0f / sum;
    }
    tile::bar_sync(2 + group, 128);
    TILE_UNROLL
    for (int j = 0; j < 4; ++j) {
      tile::frag<half_t, 8> O_half;
      TILE_UNROLL
      for (int i = 0; i < 8; ++i) {
        O_half[i] = tile::cast<half_t>(O_local[j * 8 + i] * row_sum[i >> 1 & 1]);
      }
      tile::stmatrix_x4(Q_shared + (group * 4096 + (tid >> 5) * 1024 + (tid & 15) * 64 + (((j * 2 + (tid >> 4 & 1)) ^ (tid & 7)) * 8)), O_half + 0);  // stage
    }
    tile::fence_proxy_async();
    tile::bar_sync(2 + group, 128);
    if (tid == 0) {
      tile::tma_store<2>(O, Q_shared + group * 4096, 0, bx * 128 + group * 64);  // store
      tile::tma_store_commit();
      tile::tma_store_wait_read<0>();
    }
  }
}
TILE_EXPORT(hopper_attention)
