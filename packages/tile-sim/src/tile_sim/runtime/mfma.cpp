// mfma: the operands of a wave are gathered, multiplied and scattered by the last lane to arrive.
#include "mfma.h"

#include "collective.h"
#include "registers.h"

using namespace tsim;

namespace {

[[noreturn]] void refuse(uint32_t line, const std::string& message) {
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, message);
}

// A kernel executes few kinds of products many times: the last one is remembered.
struct Remembered {
  uint64_t key;      // 0: none yet
  MfmaKind kind;
};

uint64_t key_of(const Mfma& p) {
  const uint64_t types = uint64_t(p.d_type & 255) << 16 | uint64_t(p.a_type & 255) << 8 |
                         uint64_t(p.b_type & 255);
  return 1ull << 63 | uint64_t(p.shape) << 32 | uint64_t(p.pack & 255) << 24 | types;
}

MfmaKind find_mfma(const Mfma& p, uint32_t line) {
  for (auto find : {find_float_mfma, find_integer_mfma, find_double_mfma}) {
    const MfmaKind kind = find(p);
    if (kind.multiply) return kind;
  }
  refuse(line, format("no mfma %dx%dx%d of such element types", p.shape >> 16, p.shape >> 8 & 255,
                      p.shape & 255));
}

__thread Remembered remembered __attribute__((tls_model("initial-exec")));

}  // namespace

extern "C" void tsim_mfma(const tsim_registers* d, const tsim_registers* a,
                          const tsim_registers* b, int shape, int pack, int d_type, int a_type,
                          int b_type, unsigned line) {
  const Block& block = *current_block;
  if (block.warp_size != WAVE || ~block.warps[size_t(current_thread->warp)].lanes) {
    refuse(line, "mfma in a wave that does not have 64 lanes");
  }
  Mfma product{nullptr, nullptr, nullptr, shape, pack, d_type, a_type, b_type};
  if (remembered.key != key_of(product)) {
    remembered.kind = find_mfma(product, line);
    remembered.key = key_of(product);
  }
  const MfmaKind kind = remembered.kind;
  product.a = read_registers(*a, uint32_t(pack) * kind.a_bytes, line);
  product.b = read_registers(*b, uint32_t(pack) * kind.b_bytes, line);
  read_registers(*d, kind.d_bytes, line);
  product.d = write_registers(*d, kind.d_bytes, line);
  collective(OP_MFMA, ~0ull, &product, line, [&](Warp&, Rendezvous& r) {
    WaveOperands operands;
    for_each_lane<Mfma>(r, [&](int lane, Mfma& p) {
      if (key_of(p) != key_of(product)) {
        refuse(r.line, "lanes of one wave execute different products");
      }
      operands.lanes[lane] = &p;
    });
    kind.multiply(operands);
  });
}
