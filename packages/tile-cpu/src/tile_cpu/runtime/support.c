// What the code of a kernel asks of the library it stands in: an entry, threads, memory, errors.
// The macros ENTRY_COUNT and ENTRY_KINDS describe the parameters of the kernel.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

enum { CHUNKS_PER_THREAD = 32, INLINE_BELOW_NS = 10000, ALIGNMENT = 128, KEPT = 8, MOST_THREADS = 256 };

// Errors -------------------------------------------------------------------------------------

static pthread_mutex_t reason_guard = PTHREAD_MUTEX_INITIALIZER;
static char reason[512];

static void add_reason(const char *text) {
  size_t used = strlen(reason);
  snprintf(reason + used, sizeof reason - used, "%s", text);
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  pthread_mutex_lock(&reason_guard);
  reason[0] = 0;
  for (int32_t k = 0; k < count; ++k) add_reason(parts[k]);
  pthread_mutex_unlock(&reason_guard);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text) {
  TVMFFIErrorSetRaisedFromCStrParts(kind, &text, 1);
}

// Copies why a call failed.
SHOWN void tile_reason(char *out, size_t size) {
  pthread_mutex_lock(&reason_guard);
  snprintf(out, size, "%s", reason);
  pthread_mutex_unlock(&reason_guard);
}

// Memory: blocks that were given back are kept by their thread -------------------------------

typedef struct {
  void *place;
  size_t size;
  int used;
} Block;

static __thread Block blocks[KEPT];
static pthread_key_t end_of_thread; // whose destructor frees what the thread kept

static void drop_blocks(void *kept) {
  Block *all = kept;
  for (int k = 0; k < KEPT; ++k) free(all[k].place), all[k] = (Block){0};
}

static void *allocate(int type, int id, uint64_t size, int code, int bits) {
  Block *spare = 0;
  for (int k = 0; k < KEPT; ++k) {
    Block *b = &blocks[k];
    if (b->used) continue;
    if (b->place && b->size >= size && b->size / 2 <= size) return b->used = 1, b->place;
    if (!spare || !b->place) spare = b;
  }
  void *place = 0;
  if (posix_memalign(&place, ALIGNMENT, size ? size : 1)) return 0;
  if (spare) {
    pthread_setspecific(end_of_thread, blocks);
    free(spare->place);
    *spare = (Block){place, size, 1};
  }
  return place;
}

static int release(int type, int id, void *place) {
  for (int k = 0; k < KEPT; ++k)
    if (blocks[k].place == place) return blocks[k].used = 0;
  free(place);
  return 0;
}

// Threads ------------------------------------------------------------------------------------

typedef struct {
  void *sync;
  int32_t tasks;
} Environment;
typedef int (*Body)(int task, Environment *environment, void *data);
typedef struct {
  Body body;
  void *data;
  int next, count, failed;
} Job;

// GOMP_parallel, omp_get_max_threads, omp_in_parallel: filled in by who loads the library.
SHOWN void *tile_threads[3];
SHOWN int tile_most_threads; // that OpenMP's choice is cut down to; 0 if any number will do
static int64_t work_hint;
static __thread int is_worker;

static void work(void *argument) {
  Job *job = argument;
  Environment environment = {0, job->count};
  for (int task; (task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->count;)
    if (job->body(task, &environment, job->data)) {
      __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
      __atomic_store_n(&job->next, job->count, __ATOMIC_RELAXED);
    }
}

static void *work_apart(void *job) {
  is_worker = 1;
  work(job);
  return 0;
}

static int thread_count(void) {
  cpu_set_t set;
  int most = tile_most_threads, count = 1;
  if (tile_threads[1]) count = ((int (*)(void))tile_threads[1])();
  else if (!sched_getaffinity(0, sizeof set, &set)) count = CPU_COUNT(&set);
  return most && count > most ? most : count;
}

static int inside_threads(void) {
  return tile_threads[2] ? ((int (*)(void))tile_threads[2])() : is_worker;
}

static void run_on_threads(Job *job, int threads) {
  if (tile_threads[0]) {
    ((void (*)(void (*)(void *), void *, unsigned, unsigned))tile_threads[0])(work, job, threads, 0);
    return;
  }
  pthread_t others[MOST_THREADS];
  int started = 0;
  for (; started < threads - 1 && started < MOST_THREADS; ++started)
    if (pthread_create(&others[started], 0, work_apart, job)) break;
  int before = is_worker;
  is_worker = 1;
  work(job);
  is_worker = before;
  while (started) pthread_join(others[--started], 0);
}

// A loop of `tasks` parts, or of as many as suit the threads if it is 0.
static int launch(Body body, void *data, int tasks) {
  int64_t nanoseconds = __atomic_exchange_n(&work_hint, 0, __ATOMIC_RELAXED);
  int is_short = nanoseconds > 0 && nanoseconds < INLINE_BELOW_NS;
  int threads = is_short || inside_threads() ? 1 : thread_count();
  if (threads > 1) {
    Job job = {body, data, 0, tasks ? tasks : threads * CHUNKS_PER_THREAD, 0};
    run_on_threads(&job, threads);
    return job.failed ? -1 : 0;
  }
  Environment environment = {0, tasks > 1 ? tasks : 1};
  for (int task = 0; task < environment.tasks; ++task)
    if (body(task, &environment, data)) return -1;
  return 0;
}

// The kernel's own names for all this; it has those that it uses.
extern __attribute__((weak)) void *__TVMBackendParallelLaunch;
extern __attribute__((weak)) void *__TVMBackendAllocWorkspace;
extern __attribute__((weak)) void *__TVMBackendFreeWorkspace;
extern __attribute__((weak)) void *__tile_work_hint;

__attribute__((constructor)) static void introduce(void) {
  pthread_key_create(&end_of_thread, drop_blocks);
  if (&__TVMBackendParallelLaunch) __TVMBackendParallelLaunch = (void *)launch;
  if (&__TVMBackendAllocWorkspace) __TVMBackendAllocWorkspace = (void *)allocate;
  if (&__TVMBackendFreeWorkspace) __TVMBackendFreeWorkspace = (void *)release;
  if (&__tile_work_hint) __tile_work_hint = &work_hint;
}

// The entry ----------------------------------------------------------------------------------

typedef struct {
  int32_t type, pad;
  union {
    int64_t integer;
    double real;
    void *pointer;
  };
} Any;
enum { INTEGER = 1, REAL = 3, POINTER = 4 };

extern int __tvm_ffi_main(void *self, Any *arguments, int32_t count, Any *result);

// Each address is that of an argument in its own type of C.
SHOWN int tile_main(void **addresses) {
  static const char kinds[] = ENTRY_KINDS;
  Any arguments[ENTRY_COUNT + 1] = {0}, result = {0};
  for (int k = 0; k < ENTRY_COUNT; ++k) {
    void *at = addresses[k];
    Any *value = &arguments[k];
    value->type = kinds[k] == 'p' ? POINTER : kinds[k] == 'f' || kinds[k] == 'd' ? REAL : INTEGER;
    switch (kinds[k]) {
      case 'p': value->pointer = *(void **)at; break;
      case 'f': value->real = *(float *)at; break;
      case 'd': value->real = *(double *)at; break;
      case 'b': value->integer = *(int8_t *)at; break;
      case 'B': value->integer = *(uint8_t *)at; break;
      case 'h': value->integer = *(int16_t *)at; break;
      case 'H': value->integer = *(uint16_t *)at; break;
      case 'i': value->integer = *(int32_t *)at; break;
      case 'I': value->integer = *(uint32_t *)at; break;
      default: value->integer = *(int64_t *)at;
    }
  }
  return __tvm_ffi_main(0, arguments, ENTRY_COUNT, &result);
}
