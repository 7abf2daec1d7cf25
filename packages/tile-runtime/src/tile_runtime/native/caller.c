/* Calls of kernels without Python in between.
 *
 * A caller remembers kinds of arguments that passed all checks: shapes, strides, element types,
 * devices, alignment, and the numbers that sizes depend on. A call whose arguments are of a kind
 * that it knows is made at once; every other call is a miss, which Python answers with the
 * complete checks, and tells the caller what it found.
 *
 * No header of Python, NumPy or torch is needed: what is used of Python is its stable interface,
 * declared below; the fields of arrays are those of NumPy's public structure, which Python
 * compares with an array before it uses this library; torch fills a DLTensor through the
 * functions that it publishes for that (DLPack 1.2).
 */
#include <stdint.h>
#include <string.h>
#include <stdlib.h>

/* What is used of Python ------------------------------------------------------------------- */

typedef struct Object Object;
typedef struct {
    const char *name;
    Object *(*call)(Object *, Object *const *, intptr_t);
    int flags;
    const char *doc;
} Method;
enum { FASTCALL = 0x80 };

extern Object *PyCFunction_NewEx(Method *, Object *, Object *);
extern Object *PyCapsule_New(void *, const char *, void (*)(Object *));
extern void *PyCapsule_GetPointer(Object *, const char *);
extern Object *PyObject_Vectorcall(Object *, Object *const *, size_t, Object *);
extern Object *PyObject_GetAttrString(Object *, const char *);
extern Object *PyList_New(intptr_t);
extern int PyList_SetItem(Object *, intptr_t, Object *);
extern Object *PyTuple_New(intptr_t);
extern int PyTuple_SetItem(Object *, intptr_t, Object *);
extern Object *PyLong_FromLong(long);
extern long long PyLong_AsLongLongAndOverflow(Object *, int *);
extern unsigned long long PyLong_AsUnsignedLongLongMask(Object *);
extern double PyFloat_AsDouble(Object *);
extern double PyLong_AsDouble(Object *);
extern Object *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern void PyErr_SetString(Object *, const char *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern void Py_IncRef(Object *);
extern void Py_DecRef(Object *);
extern Object *PyExc_RuntimeError;
extern char PyLong_Type, PyFloat_Type, PyBool_Type, _Py_TrueStruct, _Py_NoneStruct,
    _Py_NotImplementedStruct;

#define TRUE ((Object *)&_Py_TrueStruct)
#define NONE ((Object *)&_Py_NoneStruct)
#define MISS ((Object *)&_Py_NotImplementedStruct)

struct Object {
    intptr_t references;
    const void *type;
};

/* NumPy's PyArrayObject_fields */
typedef struct {
    Object head;
    char *data;
    int rank;
    intptr_t *shape, *strides;
    Object *base, *element;
    int flags;
} Array;

/* DLPack */
typedef struct {
    char *data;
    int32_t device, number;
    int32_t rank;
    uint32_t element;
    int64_t *shape, *strides;
    uint64_t offset;
} Tensor;

/* What Python fills in; the same structures stand in native/layouts.py ---------------------- */

enum { TENSOR, BOOL, INT, FLOAT, OUTPUT };
enum { ADDRESS, SCALAR, CONSTANT, STATUS };
enum { AS_INT, AS_FLOAT, AS_DOUBLE, AS_BOOL, AS_POINTER };
enum { PACKED, ROW, CUDA, HIP };

typedef struct {
    int32_t kind, keyed;    /* whether the number is part of what is remembered */
    int64_t low, high;      /* of integers */
    int64_t mask, array_mask;   /* of addresses of tensors and arrays: the bits that matter */
} Parameter;

typedef struct {
    int32_t kind, parameter, type, pad;
    int64_t value;
} Slot;

typedef struct {
    int32_t interface, slots;
    void *function, *handle;
    Slot *slot;
    uint64_t context;       /* of the device; 0 where there is none to compare */
    int32_t (*read_context)(uint64_t *);
    uint32_t grid[3], block[3], shared_bytes, attribute_count;
    void *attributes;
    Object *stream_of, *device;   /* stream_of(device) is called where it is there */
    Object *failed;         /* failed(kind, number) raises */
    int32_t output_count, changed_count;
    int32_t *output;        /* parameters in the order in which they are allocated */
    Object **maker;
    int32_t *returned;      /* positions among outputs, in the order in which they return */
    int32_t *changed;       /* parameters of torch tensors that the kernel writes */
    Object *keep;           /* whatever has to live as long as this */
} Plan;

typedef struct {
    const void *array;      /* numpy.ndarray, or null */
    const void *tensor, *parameter;   /* torch.Tensor and torch.nn.Parameter, or null */
    int (*describe)(void *, Tensor *);
    Object *is_negated, *is_inference, *bump;
} Libraries;

/* A caller ----------------------------------------------------------------------------------- */

enum { MOST_PARAMETERS = 64, MOST_DIMENSIONS = 8, WORDS = 5 + 2 * MOST_DIMENSIONS };
enum { TABLE = 1024, MOST_PLANS = 512 };

typedef struct Entry {
    uint64_t hash;
    int32_t words;
    int64_t *key;
    Plan plan;
} Entry;

typedef struct {
    int32_t count, inputs;
    Parameter *parameter;   /* all of the kernel, in order */
    Libraries libraries;
    Entry *table[TABLE];
    int32_t used;
    Entry *last;
} Caller;

typedef struct {
    char *address;
    union { int64_t i; double d; } number;
} Value;

static const char NAME[] = "tile.caller";

static int read_array(Array *array, int64_t mask, int64_t *key, char **address)
{
    int rank = array->rank;
    if (rank > MOST_DIMENSIONS) return 0;
    key[0] = 1 | (int64_t)rank << 8;
    key[1] = (intptr_t)array->element;
    key[2] = array->flags;
    key[3] = array->data ? (intptr_t)array->data & mask : -1;
    memcpy(key + 4, array->shape, rank * sizeof(int64_t));
    memcpy(key + 4 + rank, array->strides, rank * sizeof(int64_t));
    *address = array->data;
    return 4 + 2 * rank;
}

static int read_tensor(Caller *c, Object *arg, int64_t mask, int64_t *key, char **address)
{
    Tensor t;
    Object *negated;
    if (c->libraries.describe(arg, &t)) {
        PyErr_Clear();
        return 0;
    }
    if (t.rank > MOST_DIMENSIONS) return 0;
    negated = PyObject_Vectorcall(c->libraries.is_negated, &arg, 1, 0);
    if (!negated) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(negated);
    if (negated == TRUE) return 0;
    t.data += t.offset;
    key[0] = 2 | (int64_t)t.rank << 8;
    key[1] = t.element;
    if ((t.element >> 8 & 0xff) <= 8) { /* several types of a byte have one number in DLPack */
        Object *element = PyObject_GetAttrString((Object *)arg, "dtype");
        if (!element) {
            PyErr_Clear();
            return 0;
        }
        key[1] = (intptr_t)element; /* types live as long as torch */
        Py_DecRef(element);
    }
    key[2] = (int64_t)t.device << 32 | (uint32_t)t.number;
    key[3] = t.data ? (intptr_t)t.data & mask : -1;
    memcpy(key + 4, t.shape, t.rank * sizeof(int64_t));
    memcpy(key + 4 + t.rank, t.strides, t.rank * sizeof(int64_t));
    *address = t.data;
    return 4 + 2 * t.rank;
}

/* Return how many words of the key an argument takes, or 0 for what Python has to look at. */
static int read_object(Caller *c, Object *arg, const Parameter *p, int64_t *key, char **address)
{
    const Libraries *known = &c->libraries;
    if (arg == NONE) {
        key[0] = 3;
        *address = 0;
        return 1;
    }
    if (arg->type == known->tensor || arg->type == known->parameter)
        return known->describe ? read_tensor(c, arg, p->mask, key, address) : 0;
    if (arg->type == known->array && known->array)
        return read_array((Array *)arg, p->array_mask, key, address);
    return 0;
}

static int read_number(const Parameter *p, Object *arg, Value *value)
{
    if (p->kind == FLOAT) {
        if (arg->type == &PyFloat_Type) {
            value->number.d = PyFloat_AsDouble(arg);
            return 1;
        }
        if (arg->type != &PyLong_Type) return 0;
        value->number.d = PyLong_AsDouble(arg);
        if (value->number.d == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return 1;
    }
    if (p->kind == BOOL) {
        if (arg->type != &PyBool_Type) return 0;
        value->number.i = arg == TRUE;
        return 1;
    }
    if (arg->type != &PyLong_Type) return 0;
    int overflow = 0;
    value->number.i = PyLong_AsLongLongAndOverflow(arg, &overflow);
    return !overflow && value->number.i >= p->low && value->number.i <= p->high;
}

/* Fill key and values from the arguments; return the length of the key, or 0. */
static int read_all(Caller *c, Object *const *args, intptr_t count, int64_t *key, Value *values)
{
    int words = 0, used;
    intptr_t given = 0;
    if (count != c->inputs) return 0;
    for (int k = 0; k < c->count; k++) {
        const Parameter *p = c->parameter + k;
        if (p->kind == OUTPUT) continue;
        Object *arg = args[given++];
        if (p->kind == TENSOR) {
            used = read_object(c, arg, p, key + words, &values[k].address);
            if (!used) return 0;
            words += used;
        } else {
            if (!read_number(p, arg, values + k)) return 0;
            if (p->keyed) key[words++] = values[k].number.i;
        }
    }
    key[words++] = 4; /* so that there is always a word */
    return words;
}

static uint64_t hash_of(const int64_t *key, int words)
{
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (int k = 0; k < words; k++) {
        h ^= (uint64_t)key[k];
        h *= 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    return h;
}

static int is_for(const Entry *e, const int64_t *key, int words)
{
    return e && e->words == words && !memcmp(e->key, key, words * sizeof(int64_t));
}

static Entry *find(Caller *c, const int64_t *key, int words)
{
    if (is_for(c->last, key, words)) return c->last;
    uint64_t h = hash_of(key, words);
    for (uint64_t at = h % TABLE; c->table[at]; at = (at + 1) % TABLE)
        if (c->table[at]->hash == h && is_for(c->table[at], key, words))
            return c->last = c->table[at];
    return 0;
}

static void forget_all(Caller *c)
{
    c->last = 0;
    c->used = 0;
    for (int k = 0; k < TABLE; k++) {
        Entry *e = c->table[k];
        c->table[k] = 0;
        if (!e) continue;
        Object *keep = e->plan.keep;
        free(e->key);
        free(e);
        Py_DecRef(keep);
    }
}

/* Launching ---------------------------------------------------------------------------------- */

typedef struct { int32_t type, pad; union { int64_t i; double d; void *p; } value; } Any;
typedef struct {
    uint32_t grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    uint32_t attribute_count;
} Config;

typedef int32_t PackedCall(void *, Any *, int32_t, Any *);
typedef int32_t RowCall(void **);
typedef int32_t CudaCall(Config *, void *, void **, void **);
typedef int32_t HipCall(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                        uint32_t, void *, void **, void **);

static void fill_packed(const Plan *p, const Value *values, int32_t *status, Any *args)
{
    for (int k = 0; k < p->slots; k++) {
        const Slot *s = p->slot + k;
        Any *a = args + k;
        a->pad = 0;
        a->type = 4; /* an address, as TVM numbers them; 1 int, 2 bool, 3 float */
        if (s->kind == ADDRESS) a->value.p = values[s->parameter].address;
        else if (s->kind == STATUS) a->value.p = status;
        else if (s->kind == CONSTANT) { a->type = 1; a->value.i = s->value; }
        else if (s->type == AS_DOUBLE) { a->type = 3; a->value.d = values[s->parameter].number.d; }
        else { a->type = s->type == AS_BOOL ? 2 : 1; a->value.i = values[s->parameter].number.i; }
    }
}

static void fill_row(const Plan *p, const Value *values, int32_t *status, int64_t *held, void **row)
{
    for (int k = 0; k < p->slots; k++) {
        const Slot *s = p->slot + k;
        row[k] = held + k;
        if (s->kind == ADDRESS) held[k] = (intptr_t)values[s->parameter].address;
        else if (s->kind == STATUS) held[k] = (intptr_t)status;
        else if (s->kind == CONSTANT) held[k] = s->value;
        else if (s->type == AS_FLOAT) {
            float narrow = (float)values[s->parameter].number.d;
            memcpy(held + k, &narrow, sizeof narrow);
        } else memcpy(held + k, &values[s->parameter].number, sizeof(int64_t));
    }
}

static int32_t launch(const Plan *p, void *stream, const Value *values, int32_t *status)
{
    if (p->interface == PACKED) {
        Any args[2 * MOST_PARAMETERS], result = {0};
        fill_packed(p, values, status, args);
        return ((PackedCall *)p->function)(p->handle, args, p->slots, &result);
    }
    int64_t held[2 * MOST_PARAMETERS];
    void *row[2 * MOST_PARAMETERS];
    fill_row(p, values, status, held, row);
    if (p->interface == ROW) return ((RowCall *)p->function)(row);
    if (p->interface == HIP)
        return ((HipCall *)p->function)(p->handle, p->grid[0], p->grid[1], p->grid[2], p->block[0],
                                        p->block[1], p->block[2], p->shared_bytes, stream, row, 0);
    Config config = {{p->grid[0], p->grid[1], p->grid[2]},
                     {p->block[0], p->block[1], p->block[2]},
                     p->shared_bytes, stream, p->attributes, p->attribute_count};
    return ((CudaCall *)p->function)(&config, p->handle, row, 0);
}

static Object *failure(const Plan *p, int kind, int32_t number)
{
    Object *args[2] = {PyLong_FromLong(kind), PyLong_FromLong(number)};
    Object *result = PyObject_Vectorcall(p->failed, args, 2, 0);
    Py_DecRef(args[0]);
    Py_DecRef(args[1]);
    if (result) {
        Py_DecRef(result);
        PyErr_SetString(PyExc_RuntimeError, "a kernel failed for no stated reason");
    }
    return 0;
}

/* Tell autograd which tensors changed; 0 if that raised. */
static int announce(const Caller *c, const Plan *p, Object *const *args)
{
    for (int k = 0; k < p->changed_count; k++) {
        Object *tensor = args[p->changed[k]];
        Object *found = PyObject_Vectorcall(c->libraries.is_inference, &tensor, 1, 0);
        if (!found) return 0;
        Py_DecRef(found);
        if (found == TRUE) continue;
        Object *one = PyTuple_New(1);
        if (!one) return 0;
        Py_IncRef(tensor);
        PyTuple_SetItem(one, 0, tensor);
        found = PyObject_Vectorcall(c->libraries.bump, &one, 1, 0);
        Py_DecRef(one);
        if (!found) return 0;
        Py_DecRef(found);
    }
    return 1;
}

static Object *returned(const Plan *p, Object **outputs)
{
    Object *result;
    if (!p->output_count) {
        Py_IncRef(NONE);
        return NONE;
    }
    if (p->output_count == 1) return outputs[0];
    result = PyList_New(p->output_count);
    for (int k = 0; result && k < p->output_count; k++)
        PyList_SetItem(result, k, outputs[p->returned[k]]);
    return result;
}

static Object *run(const Caller *c, const Plan *p, Object *const *args, Value *values)
{
    Object *outputs[MOST_PARAMETERS], *result = 0;
    int64_t ignored[WORDS];
    int made = 0;
    void *stream = 0;
    int32_t status = 0, code;
    uint64_t context = 0;
    if (p->read_context) {
        p->read_context(&context);
        if (context != p->context) goto miss;
    }
    for (; made < p->output_count; made++) {
        outputs[made] = PyObject_Vectorcall(p->maker[made], 0, 0, 0);
        if (!outputs[made]) goto done;
        int at = p->output[made];
        if (!read_object((Caller *)c, outputs[made], c->parameter + at, ignored,
                         &values[at].address)) {
            made++;
            goto miss;
        }
    }
    if (p->stream_of) {
        Object *found = PyObject_Vectorcall(p->stream_of, &p->device, 1, 0);
        if (!found) goto done;
        stream = (void *)(uintptr_t)PyLong_AsUnsignedLongLongMask(found);
        Py_DecRef(found);
    }
    void *thread = PyEval_SaveThread();
    code = launch(p, stream, values, &status);
    PyEval_RestoreThread(thread);
    if (code) failure(p, 0, code);
    else if (status) failure(p, 1, status);
    else if (announce(c, p, args)) {
        result = returned(p, outputs);
        if (result) return result;
    }
    goto done;
miss:
    Py_IncRef(MISS);
    result = MISS;
done:
    while (made) Py_DecRef(outputs[--made]);
    return result;
}

static Object *call(Object *self, Object *const *args, intptr_t count)
{
    int64_t key[MOST_PARAMETERS * WORDS];
    Value values[MOST_PARAMETERS];
    Caller *c = PyCapsule_GetPointer(self, NAME);
    int words = read_all(c, args, count, key, values);
    Entry *e = words ? find(c, key, words) : 0;
    if (!e) {
        Py_IncRef(MISS);
        return MISS;
    }
    Plan plan = e->plan; /* other threads may forget it meanwhile */
    Py_IncRef(plan.keep);
    Object *result = run(c, &plan, args, values);
    Py_DecRef(plan.keep);
    return result;
}

/* What Python calls -------------------------------------------------------------------------- */

static void drop(Object *capsule)
{
    Caller *c = PyCapsule_GetPointer(capsule, NAME);
    forget_all(c);
    free(c->parameter);
    free(c);
}

static Method METHOD = {"call", call, FASTCALL, 0};

/* Return a function of Python that makes the calls that it knows, and else NotImplemented. */
Object *tile_caller(const Parameter *parameter, int32_t count, const Libraries *libraries)
{
    if (count > MOST_PARAMETERS) return Py_IncRef(NONE), NONE;
    Caller *c = calloc(1, sizeof *c);
    c->count = count;
    c->parameter = malloc((count + 1) * sizeof *parameter);
    memcpy(c->parameter, parameter, count * sizeof *parameter);
    for (int k = 0; k < count; k++) c->inputs += parameter[k].kind != OUTPUT;
    c->libraries = *libraries;
    Object *capsule = PyCapsule_New(c, NAME, drop);
    Object *made = PyCFunction_NewEx(&METHOD, capsule, 0);
    Py_DecRef(capsule);
    return made;
}

/* Learn what to do for arguments like these; return whether that was possible. */
int32_t tile_remember(Object *capsule, const Libraries *libraries, Object *const *args,
                      int32_t count, const Plan *plan)
{
    int64_t key[MOST_PARAMETERS * WORDS];
    Value values[MOST_PARAMETERS];
    Caller *c = PyCapsule_GetPointer(capsule, NAME);
    c->libraries = *libraries;
    int words = read_all(c, args, count, key, values);
    if (!words || plan->slots > 2 * MOST_PARAMETERS) return 0;
    if (find(c, key, words)) return 1;
    if (c->used >= MOST_PLANS) forget_all(c);
    Entry *e = calloc(1, sizeof *e);
    e->hash = hash_of(key, words);
    e->words = words;
    e->key = malloc(words * sizeof *key);
    memcpy(e->key, key, words * sizeof *key);
    e->plan = *plan;
    Py_IncRef(plan->keep);
    uint64_t at = e->hash % TABLE;
    while (c->table[at]) at = (at + 1) % TABLE;
    c->table[at] = e;
    c->used++;
    return 1;
}

/* Forget all kinds of arguments. */
void tile_forget(Object *capsule)
{
    forget_all(PyCapsule_GetPointer(capsule, NAME));
}

/* Return what this library takes for the type of an object, to be compared with the truth. */
const void *tile_type_of(Object *object)
{
    return object->type;
}

/* Return the fields that this library reads of an array, to be compared with the truth. */
void tile_fields_of(Object *object, int64_t *found)
{
    Array *array = (Array *)object;
    found[0] = (intptr_t)array->data;
    found[1] = array->rank;
    found[2] = array->shape[0];
    found[3] = array->strides[0];
    found[4] = (intptr_t)array->element;
    found[5] = array->flags;
}
