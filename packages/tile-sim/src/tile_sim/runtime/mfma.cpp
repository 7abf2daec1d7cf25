// mfma: the operands of a wave are gathered, multiplied and scattered by the last lane to arrive.
#include "mfma.h"

#include "collective.h"
#include "registers.h"

using namespace tsim;

namespace {

uint64_t key_of(const tsim_wave_product& p) {
  const uint64_t types = uint64_t(p.d_type & 255) << 16 | uint64_t(p.a_type & 255) << 8 |
                         uint64_t(p.b_type & 255);
  return 1ull << 63 | uint64_t(p.shape) << 32 | uint64_t(p.pack & 255) << 24 | types;
}

MfmaKind find_mfma(const tsim_wave_product& p, uint32_t line) {
  for (auto find : {find_float_mfma, find_integer_mfma, find_double_mfma}) {
    const MfmaKind kind = find(p);
    if (kind.multiply) return kind;
  }
  refuse(line, format("no mfma %dx%dx%d of such element types", p.shape >> 16, p.shape >> 8 & 255,
                      p.shape & 255));
}

__thread Remembered<MfmaKind> remembered_mfma __attribute__((tls_model("initial-exec")));

// The factors of a lane, side by side: where its registers are, or where they are gathered.
const unsigned char* factor(const tsim_registers& r, int bytes, int stride, unsigned char* room,
                            uint32_t line) {
  if (stride == 1) return read_registers(r, uint32_t(bytes), line);
  read_spread(r, bytes / r.element_bytes, stride, room, line);
  return room;
}

constexpr int MOST_BYTES = 256;   // of a factor in one lane: 16 instructions of 16 bytes

}  // namespace

extern "C" void tsim_mfma(const tsim_registers* d, const tsim_registers* a,
                          const tsim_registers* b, const tsim_wave_product* kind, unsigned line) {
  const Block& block = *current_block;
  if (block.warp_size != WAVE || ~block.warps[size_t(current_thread->warp)].lanes) {
    refuse(line, "mfma in a wave that does not have 64 lanes");
  }
  Mfma product{nullptr, nullptr, nullptr, kind};
  if (remembered_mfma.key != key_of(*kind)) {
    remembered_mfma.kind = find_mfma(*kind, line);
    remembered_mfma.key = key_of(*kind);
  }
  const MfmaKind found = remembered_mfma.kind;
  alignas(16) unsigned char a_room[MOST_BYTES], b_room[MOST_BYTES], sums[64];
  product.a = factor(*a, kind->pack * int(found.a_bytes), kind->a_stride, a_room, line);
  product.b = factor(*b, kind->pack * int(found.b_bytes), kind->b_stride, b_room, line);
  const int sum_count = int(found.d_bytes) / d->element_bytes;
  if (kind->d_stride == 1) {
    read_registers(*d, found.d_bytes, line);
    product.d = write_registers(*d, found.d_bytes, line);
  } else {
    read_spread(*d, sum_count, kind->d_stride, sums, line);
    product.d = sums;
  }
  collective(OP_MFMA, ~0ull, &product, line, [&](Warp&, Rendezvous& r) {
    WaveOperands operands;
    for_each_lane<Mfma>(r, [&](int lane, Mfma& p) {
      if (key_of(*p.kind) != key_of(*kind)) {
        refuse(r.line, "lanes of one wave execute different products");
      }
      operands.lanes[lane] = &p;
    });
    found.multiply(operands);
  });
  if (kind->d_stride != 1) write_spread(*d, sum_count, kind->d_stride, sums, line);
}
