/* Launching: what compiled code gets, what it leaves behind, and what the call returns. */
#ifndef TILE_LAUNCHING_H
#define TILE_LAUNCHING_H

#include "reading.h"

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
        Any args[MOST_SLOTS], result = {0};
        fill_packed(p, values, status, args);
        return ((PackedCall *)p->function)(p->handle, args, p->slots, &result);
    }
    int64_t held[MOST_SLOTS];
    void *row[MOST_SLOTS];
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

/* Raise the error of a call that failed. */
static void failure(const Plan *p, int kind, int32_t number)
{
    Object *args[2] = {PyLong_FromLong(kind), PyLong_FromLong(number)}, *result = 0;
    if (args[0] && args[1]) result = PyObject_Vectorcall(p->failed, args, 2, 0);
    Py_DecRef(args[0]);
    Py_DecRef(args[1]);
    if (!result) return;
    Py_DecRef(result);
    PyErr_SetString(PyExc_RuntimeError, "a kernel failed for no stated reason");
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
    if (p->read_context && (p->read_context(&context) || context != p->context)) goto miss;
    for (; made < p->output_count; made++) {
        outputs[made] = PyObject_Vectorcall(p->maker[made], 0, 0, 0);
        if (!outputs[made]) goto done;
        int at = p->output[made];
        const Parameter *o = c->parameter + at;
        if (!read_object(c, outputs[made], o, ignored, &values[at].address)
            || (intptr_t)values[at].address & o->array_mask) {
            made++;
            goto miss;
        }
    }
    if (p->stream_of) {
        Object *found = PyObject_Vectorcall(p->stream_of, &p->device, 1, 0);
        if (!found) goto done;
        stream = (void *)(uintptr_t)PyLong_AsUnsignedLongLongMask(found);
        Py_DecRef(found);
        if (PyErr_Occurred()) goto done;
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

#endif
