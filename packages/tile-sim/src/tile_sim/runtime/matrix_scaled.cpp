// mma with scales for groups along K: as `matrix_product.cpp`, and each lane's words of scales.
#include "collective.h"
#include "engine.h"
#include "matrix_elements.h"
#include "matrix_product.h"
#include "registers.h"

namespace tsim {
namespace {

constexpr int M = 16, N = 8;
using E2m1 = ByteFloat<2, 1, 1, 3>;
using E8m0 = ByteFloat<8, 0, 127, -1>;

struct Scaled {
  unsigned char* d;
  const unsigned char* a;
  const unsigned char* b;
  unsigned char a_scales[4], b_scales[4];
  tsim_scaled_product kind;
};

// How many scales a row of one step has; 0 if there is no such product.
int groups_of(const tsim_scaled_product& p) {
  const auto is_narrow = [](int type) { return type == TSIM_E4M3 || type == TSIM_E5M2; };
  if (p.k == 32 && is_narrow(p.a_type) && is_narrow(p.b_type)) return p.scale_type == TSIM_E8M0;
  if (p.k != 64 || p.a_type != TSIM_U8 || p.b_type != TSIM_U8) return 0;
  return p.scale_type == TSIM_E8M0 ? 2 : p.scale_type == TSIM_E4M3 ? 4 : 0;
}

void check_selectors(const tsim_scaled_product& p, int groups, uint32_t line) {
  for (int byte : {p.a_byte, p.b_byte}) {
    if (byte < 0 || byte % groups || byte + groups > 4) {
      refuse(line, format("scales from byte %d of a word on, for %d groups", byte, groups));
    }
  }
  if (p.a_lane < 0 || p.a_lane > 1 || p.b_lane < 0 || p.b_lane > 3) {
    refuse(line, format("scales of lanes %d and %d of four: 0 or 1 for rows, 0 to 3 for columns",
                        p.a_lane, p.b_lane));
  }
}

// The bytes of a word that are chosen; a scale has no sign.
void read_scales(const tsim_registers& word, int byte, int groups, int type, unsigned char* to,
                 uint32_t line) {
  tsim_registers chosen = word;
  chosen.offset += byte;
  std::memcpy(to, read_registers(chosen, uint32_t(groups), line), size_t(groups));
  for (int g = 0; g < groups && type == TSIM_E4M3; ++g) {
    if (to[g] & 0x80) report(finding_at(TSIM_UNDEFINED, line), "a scale is negative");
  }
}

float scale_of(int type, unsigned char code) {
  return type == TSIM_E8M0 ? E8m0::decode(code) : E4m3::decode(code);
}

// Element `i` of a lane's part of an operand.
float element(const unsigned char* registers, int i, int type) {
  if (type == TSIM_E4M3) return E4m3::decode(registers[i]);
  if (type == TSIM_E5M2) return E5m2::decode(registers[i]);
  return E2m1::decode(registers[i / 2] >> (i % 2 * 4) & 15);
}

template <int K>
void multiply(const Rendezvous& r, int groups) {
  using F = Fragments<M, K / 8>;
  constexpr int a_count = M * K / WARP, b_count = K * N / WARP;
  alignas(32) float a[M][K], b[K][N], d[M][N];
  const Scaled* lanes[WARP];
  for_each_lane<Scaled>(r, [&](int lane, Scaled& own) { lanes[lane] = &own; });
  const tsim_scaled_product& kind = lanes[0]->kind;
  const int group = K / groups;
  for (int lane = 0; lane < WARP; ++lane) {
    const Scaled& own = *lanes[lane];
    for (int i = 0; i < a_count; ++i) {
      const int row = F::a_row(lane, i), k = F::a_k(lane, i);
      const Scaled& giver = *lanes[4 * (row % 8) + row / 8 + 2 * kind.a_lane];
      a[row][k] = element(own.a, i, kind.a_type) *
                  scale_of(kind.scale_type, giver.a_scales[k / group]);
    }
    for (int i = 0; i < b_count; ++i) {
      const int column = F::b_column(lane), k = F::b_k(lane, i);
      const Scaled& giver = *lanes[4 * column + kind.b_lane];
      b[k][column] = element(own.b, i, kind.b_type) *
                     scale_of(kind.scale_type, giver.b_scales[k / group]);
    }
    float part[4];
    std::memcpy(part, own.d, sizeof part);
    for (int i = 0; i < 4; ++i) d[F::d_row(lane, i)][F::d_column(lane, i)] = part[i];
  }
  for (int m = 0; m < M; ++m) add_products<K, N>(a[m], b, d[m]);
  for (int lane = 0; lane < WARP; ++lane) {
    float part[4];
    for (int i = 0; i < 4; ++i) part[i] = d[F::d_row(lane, i)][F::d_column(lane, i)];
    std::memcpy(lanes[lane]->d, part, sizeof part);
  }
}

}  // namespace
}  // namespace tsim

using namespace tsim;

extern "C" void tsim_mma_scaled(const tsim_registers* d, const tsim_registers* a,
                                const tsim_registers* b, const tsim_registers* sfa,
                                const tsim_registers* sfb, const tsim_scaled_product* kind,
                                unsigned line) {
  const Block& block = *current_block;
  const Thread& me = *current_thread;
  if (block.warp_size != WARP || block.warps[size_t(me.warp)].lanes != 0xffffffff) {
    refuse(line, "mma in a warp that does not have 32 lanes");
  }
  const int groups = groups_of(*kind);
  if (!groups) refuse(line, format("no scaled mma m16n8k%d of such element types", kind->k));
  check_selectors(*kind, groups, line);
  Scaled own{};
  own.kind = *kind;
  own.a = read_registers(*a, 16, line);
  own.b = read_registers(*b, 8, line);
  const int of_four = me.lane % 4;
  if (of_four / 2 == kind->a_lane) {
    read_scales(*sfa, kind->a_byte, groups, kind->scale_type, own.a_scales, line);
  }
  if (of_four == kind->b_lane) {
    read_scales(*sfb, kind->b_byte, groups, kind->scale_type, own.b_scales, line);
  }
  read_registers(*d, 16, line);
  own.d = write_registers(*d, 16, line);
  collective(OP_MMA, ~0ull, &own, line, [&](Warp&, Rendezvous& r) {
    for_each_lane<Scaled>(r, [&](int, Scaled& other) {
      if (std::memcmp(&other.kind, &own.kind, sizeof own.kind)) {
        refuse(r.line, "lanes of one warp execute different products");
      }
    });
    own.kind.k == 32 ? multiply<32>(r, groups) : multiply<64>(r, groups);
  });
}
