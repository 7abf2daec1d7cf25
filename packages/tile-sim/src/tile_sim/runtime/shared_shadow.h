// What the checks remember about each byte of the block's shared memory.
//
// Memory is described in chunks of 16 bytes, one cache line each: a whole chunk is what a vector
// access, a row of a matrix and an asynchronous copy touch. Once a chunk is accessed in part, its
// history is kept for parts of 8, 4, 2 or 1 bytes, as small as needed, until a write covers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "access.h"
#include "clock.h"
#include "half_bytes.h"

namespace tsim {

struct Block;
struct Observer;

// What occupies bytes until it is done with them.
enum class Pending : uint8_t { COPY, BULK_COPY, BARRIER };

class SharedShadow {
 public:
  ~SharedShadow();
  // For arenas of so many bytes.
  void configure(uint32_t arena_bytes);
  // Forgets everything: a new block starts.
  void start();

  // An access to the memory of `block`; `value` is what a write is about to put there.
  void access(Block& block, const Observer& by, uint32_t offset, uint32_t bytes, Access access,
              const void* value, Stamp stamp);
  // An engine reads: what threads have written needs a fence, too.
  void read_by_engine(Block& block, const Observer& by, uint32_t offset, uint32_t bytes,
                      Stamp stamp);
  // Some bytes are handed to code that is not watched, which may write them.
  void assume_written(uint32_t offset, uint32_t bytes);
  // An asynchronous copy is issued to some bytes; they are nobody's until it arrives.
  void begin_copy(Block& block, const Observer& by, uint32_t offset, uint32_t bytes, Stamp stamp,
                  Pending kind);
  // It arrives: as a write of `stamp`, whose order was compared when it was issued.
  void end_copy(uint32_t offset, uint32_t bytes, Stamp stamp);
  // Some bytes become a barrier, or memory again.
  void occupy(uint32_t offset, uint32_t bytes, Stamp stamp);
  void vacate(uint32_t offset, uint32_t bytes);

 private:
  // Readers that do not fit a history, or writers of one value: the latest access of each.
  struct Crowd {
    uint32_t latest_time;
    bool has_others;       // that are no threads of the block
    std::vector<Stamp> by_who;
  };

  static constexpr int FEW = 4;
  // The last write, and the reads since that are not known to come before each other.
  struct History {
    Stamp write;
    Stamp reads[FEW];
    uint32_t crowd;        // of readers: number of a Crowd, from 1; 0 if there is none
    uint32_t writers;      // a Crowd of those who stored what the last write did; 0 likewise
  };

  struct alignas(64) Chunk {
    History whole;
    uint16_t written;      // bit per byte
    uint16_t pending;      // bit per byte that an asynchronous copy will write
    uint8_t part_bytes;    // 16, or what its history is split into
    Pending kind;          // of what is pending
    uint16_t pending_who;
    uint32_t pending_line;
  };

  struct Request {
    Block& block;
    const Observer& by;
    uint32_t offset;
    uint32_t bytes;
    Access access;
    bool is_engine;        // which goes past what threads have at hand
    const unsigned char* value;
    Stamp stamp;

    // Stores of half a byte are after what stores of whole bytes left, as reads are.
    bool keeps() const { return access == Access::READ || is_half(access); }
  };

  void touch(const Request& request, uint32_t chunk, uint32_t first, uint32_t end);
  void check_pending(const Request& request, Chunk& chunk, uint32_t at, uint16_t mask);
  void check_written(const Request& request, const Chunk& chunk, uint32_t at, uint16_t mask);
  void order(const Request& request, Chunk& chunk, uint32_t number, uint32_t first, uint32_t end);
  void split(Chunk& chunk, uint32_t number, uint8_t part_bytes);
  void read(const Request& request, History& history, uint32_t at);
  void write(const Request& request, History& history, uint32_t at, uint32_t bytes);
  void join_crowd(const Request& request, uint32_t& crowd);
  void leave_crowd(uint32_t& crowd);
  void copy_crowd(uint32_t& crowd);
  Stamp unknown_write(const Request& request, const History& history) const;
  bool has_stored(const Request& request, const History& history) const;
  void check_fence(const Request& request, History& history, uint32_t at);
  void check_refill(const Request& request, const History& history, uint32_t at);
  bool is_overtaken(const Request& request, Stamp earlier, const char* what, uint32_t at);
  void check_barrier(const Request& request, const Chunk& chunk, uint32_t at);
  void walk(const Request& request);
  bool check_halves(const Request& request);
  uint32_t take_crowd();
  bool is_same_store(const Request& request, Stamp earlier, uint32_t at, uint32_t bytes) const;
  void report_race(const Request& request, Stamp earlier, const char* earlier_access, uint32_t at);
  History* parts(uint32_t chunk) { return parts_ + size_t(chunk) * 16; }

  HalfBytes halves_;
  uint32_t chunk_count_ = 0;
  std::unique_ptr<Chunk[]> chunks_;
  History* parts_ = nullptr;     // 16 of each chunk, mapped but not touched until needed
  size_t parts_bytes_ = 0;
  std::vector<std::unique_ptr<Crowd>> crowds_;
  std::vector<uint32_t> free_crowds_;
};

}  // namespace tsim
