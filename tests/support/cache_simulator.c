// Counts misses of a blocked product C[m,n] += A[m,k] B[k,n] of float32, all in rows: three levels of
// caches and two of the address cache, each set-associative and least-recently-used, in the order in
// which the loops touch lines. Nothing is prefetched; pages lie side by side.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint64_t sets, *lines;
  int ways, shift;
  uint64_t misses;
} Cache;

enum { LINE = 64, PAGE = 4096, L1 = 0, L2, L3, TLB1, TLB2, CACHES };
typedef struct {
  Cache caches[CACHES];
  uint64_t last[3];  // the line that each stream touched last: a sure hit
} Machine;

static int touch(Cache *cache, uint64_t address) {
  uint64_t line = address >> cache->shift;
  uint64_t *set = cache->lines + line % cache->sets * cache->ways;
  int at = 0;
  while (at < cache->ways && set[at] != line) at++;
  int hit = at < cache->ways;
  if (!hit) {
    at = cache->ways - 1;
    cache->misses++;
  }
  memmove(set + 1, set, at * sizeof *set);
  set[0] = line;
  return hit;
}

static void read_span(Machine *m, uint64_t from, uint64_t bytes, int stream) {
  for (uint64_t at = from / LINE * LINE; at < from + bytes; at += LINE) {
    if (m->last[stream] == at) continue;
    m->last[stream] = at;
    if (!touch(&m->caches[TLB1], at)) touch(&m->caches[TLB2], at);
    if (!touch(&m->caches[L1], at) && !touch(&m->caches[L2], at)) touch(&m->caches[L3], at);
  }
}

static long least(long a, long b) { return a < b ? a : b; }

// facts: bytes (pages of the address caches) and ways of each cache; sizes: m, n, k, rows and columns
// of a register tile, rows, columns and depth of a block. Writes the misses of each cache.
void count_misses(const long facts[CACHES][2], const long sizes[8], uint64_t misses[CACHES]) {
  long m = sizes[0], n = sizes[1], k = sizes[2], mr = sizes[3], nr = sizes[4];
  long mc = sizes[5], nc = sizes[6], kc = sizes[7];
  Machine machine = {0}, *at = &machine;
  for (int i = 0; i < CACHES; i++) {
    uint64_t unit = i < TLB1 ? LINE : PAGE, entries = i < TLB1 ? facts[i][0] / LINE : facts[i][0];
    Cache *cache = &machine.caches[i];
    cache->ways = facts[i][1], cache->sets = entries / cache->ways;
    cache->shift = __builtin_ctzl(unit);
    cache->lines = malloc(entries * sizeof *cache->lines);
    memset(cache->lines, 0xff, entries * sizeof *cache->lines);
  }
  uint64_t a = 1ull << 32, b = 2ull << 32, c = 3ull << 32;
  uint64_t packed_a = (4ull << 32) + PAGE * 3, packed_b = (5ull << 32) + PAGE * 7;
  for (long jc = 0; jc < n; jc += nc)
    for (long pc = 0; pc < k; pc += kc) {
      long wide = least(nc, n - jc), deep = least(kc, k - pc);
      for (long jr = 0; jr < wide; jr += nr)
        for (long p = 0; p < deep; p++) {
          read_span(at, b + ((pc + p) * n + jc + jr) * 4, least(nr, wide - jr) * 4, 0);
          read_span(at, packed_b + (jr * deep + p * nr) * 4, nr * 4, 1);
        }
      for (long ic = 0; ic < m; ic += mc) {
        long high = least(mc, m - ic);
        for (long ir = 0; ir < high; ir += mr)
          for (long p = 0; p < deep; p += LINE / 4) {
            for (long i = ir; i < least(ir + mr, high); i++)
              read_span(at, a + ((ic + i) * k + pc + p) * 4, LINE, 0);
            read_span(at, packed_a + (ir * deep + p * mr) * 4, LINE * mr, 1);
          }
        for (long jr = 0; jr < wide; jr += nr)
          for (long ir = 0; ir < high; ir += mr) {
            for (long p = 0; p < deep; p++) {
              read_span(at, packed_b + (jr * deep + p * nr) * 4, nr * 4, 0);
              read_span(at, packed_a + (ir * deep + p * mr) * 4, mr * 4, 1);
            }
            for (long i = ir; i < least(ir + mr, high); i++)
              read_span(at, c + ((ic + i) * n + jc + jr) * 4, least(nr, wide - jr) * 4, 2);
          }
      }
    }
  for (int i = 0; i < CACHES; i++) {
    misses[i] = machine.caches[i].misses;
    free(machine.caches[i].lines);
  }
}
