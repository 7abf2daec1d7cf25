// Indivisible updates, of all element types. Host threads that run other blocks take part, so
// every update goes through the host's own compare-and-exchange.
#include <cstring>

#include "access.h"
#include "block.h"
#include "numbers.h"
#include "scheduler.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// How a type computes: in `Value`, stored as `Bits`.
template <class T, class U>
struct Plain {
  using Value = T;
  using Bits = U;
  static Value decode(Bits x) { return bits_of<T>(x); }
  static Bits encode(Value x) { return bits_of<U>(x); }
};
struct Half {
  using Value = float;
  using Bits = uint16_t;
  static Value decode(Bits x) { return half_to_float(x); }
  static Bits encode(Value x) { return float_to_half(x); }
};
struct Bfloat16 {
  using Value = float;
  using Bits = uint16_t;
  static Value decode(Bits x) { return bfloat16_to_float(x); }
  static Bits encode(Value x) { return float_to_bfloat16(x); }
};

// A number wins over NaN.
template <class V>
V larger(V a, V b) { return a != a ? b : a < b ? b : a; }
template <class V>
V smaller(V a, V b) { return a != a ? b : b < a ? b : a; }

template <class T>
typename T::Bits added(typename T::Bits a, typename T::Bits b) {
  using V = typename T::Value;
  constexpr bool is_integer = V(1) / V(2) == V(0);
  if constexpr (is_integer) return typename T::Bits(a + b);   // wraps
  else return T::encode(T::decode(a) + T::decode(b));
}

// What replaces `old`.
template <class T>
typename T::Bits updated(int operation, typename T::Bits old, const typename T::Bits* value) {
  using Bits = typename T::Bits;
  switch (operation) {
    case TSIM_ATOMIC_ADD:
      return added<T>(old, value[0]);
    case TSIM_ATOMIC_MAX:
      return T::encode(larger(T::decode(old), T::decode(value[0])));
    case TSIM_ATOMIC_MIN:
      return T::encode(smaller(T::decode(old), T::decode(value[0])));
    case TSIM_ATOMIC_AND:
      return Bits(old & value[0]);
    case TSIM_ATOMIC_OR:
      return Bits(old | value[0]);
    case TSIM_ATOMIC_XOR:
      return Bits(old ^ value[0]);
    case TSIM_ATOMIC_CAS:
      return old == value[0] ? value[1] : old;
    case TSIM_ATOMIC_LOAD:
      return old;
    default:  // exchange, store
      return value[0];
  }
}

template <class T>
void update(int operation, unsigned char* memory, const void* values, void* olds, int count) {
  using Bits = typename T::Bits;
  auto* place = reinterpret_cast<Bits*>(memory);
  for (int i = 0; i < count; ++i) {
    Bits value[2] = {};
    if (values) {
      const size_t operands = operation == TSIM_ATOMIC_CAS ? 2 : 1;
      std::memcpy(value, static_cast<const Bits*>(values) + i, operands * sizeof(Bits));
    }
    Bits old = __atomic_load_n(place + i, __ATOMIC_SEQ_CST);
    if (operation != TSIM_ATOMIC_LOAD) {
      while (!__atomic_compare_exchange_n(place + i, &old, updated<T>(operation, old, value), true,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      }
    }
    if (olds) std::memcpy(static_cast<Bits*>(olds) + i, &old, sizeof old);
  }
}

struct AtomicType {
  uint32_t bytes;
  void (*update)(int, unsigned char*, const void*, void*, int);
};

AtomicType find_type(int type) {
  switch (type) {
    case TSIM_BOOL:
    case TSIM_U8:
      return {1, update<Plain<uint8_t, uint8_t>>};
    case TSIM_I8:
      return {1, update<Plain<int8_t, uint8_t>>};
    case TSIM_I16:
      return {2, update<Plain<int16_t, uint16_t>>};
    case TSIM_U16:
      return {2, update<Plain<uint16_t, uint16_t>>};
    case TSIM_I32:
      return {4, update<Plain<int32_t, uint32_t>>};
    case TSIM_U32:
      return {4, update<Plain<uint32_t, uint32_t>>};
    case TSIM_I64:
      return {8, update<Plain<int64_t, uint64_t>>};
    case TSIM_U64:
      return {8, update<Plain<uint64_t, uint64_t>>};
    case TSIM_F16:
      return {2, update<Half>};
    case TSIM_BF16:
      return {2, update<Bfloat16>};
    case TSIM_F32:
      return {4, update<Plain<float, uint32_t>>};
    case TSIM_F64:
      return {8, update<Plain<double, uint64_t>>};
    default:
      return {0, nullptr};
  }
}

AtomicType require_type(int type, uint32_t line) {
  const AtomicType found = find_type(type);
  if (found.update) return found;
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, "an atomic operation on a type that has none");
}

}  // namespace

namespace tsim {

void update_atomically(int operation, int type, unsigned char* memory, const void* values,
                       int count) {
  const AtomicType found = find_type(type);
  if (found.update) found.update(operation, memory, values, nullptr, count);
}

bool has_atomics(int type) { return find_type(type).update != nullptr; }

}  // namespace tsim

namespace {

// Threads that poll memory wait for others: let them run.
bool may_poll(int operation) {
  return operation == TSIM_ATOMIC_LOAD || operation == TSIM_ATOMIC_CAS ||
         operation == TSIM_ATOMIC_EXCHANGE;
}

void require_half(int shift, unsigned char bits, unsigned line) {
  if (bits < 16 && (shift == 0 || shift == 4)) return;
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, format("a store of half a byte of the number %u, at bit %d",
                                     unsigned(bits), shift));
}

// Others may exchange the byte meanwhile: blocks run on several threads of the host.
void replace_half(unsigned char* byte, int shift, unsigned char bits) {
  const auto kept = static_cast<unsigned char>(0xf0 >> shift);
  const auto mine = static_cast<unsigned char>(bits << shift);
  unsigned char old = __atomic_load_n(byte, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(byte, &old, static_cast<unsigned char>((old & kept) | mine),
                                      true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
}

// Blocks that run together may learn of each other by it.
void tell_others(Block& block, int operation, const unsigned char* word) {
  const bool reads = operation != TSIM_ATOMIC_STORE, writes = operation != TSIM_ATOMIC_LOAD;
  block.cluster->polls = writes ? 0 : block.cluster->polls + 1;
  if (!block.checks_for(TSIM_CHECK_RACE)) return;
  block.cluster->flags.update(block.clock, current_thread->who, reinterpret_cast<uintptr_t>(word),
                              reads, writes);
}

}  // namespace

extern "C" {

void tsim_store_nibble_shared(const tsim_shared* place, int shift, unsigned char bits,
                              unsigned line) {
  Block& block = *current_block;
  const Access access = shift ? Access::HIGH_HALF : Access::LOW_HALF;
  require_half(shift, bits, line);
  check_shared_place(block, *place, 1, access, line);
  record_shared(block, *current_thread, *place, 1, access, &bits, line);
  replace_half(place->address, shift, bits);
}

void tsim_store_nibble_global(const tsim_global* place, int shift, unsigned char bits,
                              unsigned line) {
  Block& block = *current_block;
  const Access access = shift ? Access::HIGH_HALF : Access::LOW_HALF;
  require_half(shift, bits, line);
  check_global_place(block, *place, 1, access, line);
  record_global(block, *current_thread, *place, 1, access, &bits, line);
  replace_half(place->address, shift, bits);
}

void tsim_atomic_shared(int operation, int type, const tsim_shared* place, const void* value,
                        void* old, int count, unsigned line) {
  Block& block = *current_block;
  const AtomicType atomic = require_type(type, line);
  const uint32_t bytes = atomic.bytes * uint32_t(count);
  if (may_poll(operation)) yield_thread(line);
  check_shared_place(block, *place, bytes, Access::ATOMIC, line);
  record_shared(block, *current_thread, *place, bytes, Access::ATOMIC, nullptr, line);
  atomic.update(operation, place->address, value, old, count);
}

void tsim_atomic_global(int operation, int type, const tsim_global* place, const void* value,
                        void* old, int count, unsigned line) {
  Block& block = *current_block;
  const AtomicType atomic = require_type(type, line);
  const uint32_t bytes = atomic.bytes * uint32_t(count);
  if (may_poll(operation)) yield_thread(line);
  check_global_place(block, *place, bytes, Access::ATOMIC, line);
  record_global(block, *current_thread, *place, bytes, Access::ATOMIC, nullptr, line);
  if (block.config->cooperative) tell_others(block, operation, place->address);
  atomic.update(operation, place->address, value, old, count);
}

}  // extern "C"
