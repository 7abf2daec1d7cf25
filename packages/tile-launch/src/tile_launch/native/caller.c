/* Calls of kernels without Python in between.
 *
 * A caller remembers kinds of arguments that passed all checks: shapes, strides, element types,
 * devices, alignment, and the numbers that sizes depend on. A call whose arguments are of a kind
 * that it knows is made at once; every other call is a miss, which Python answers with the
 * complete checks, and tells the caller what it found.
 *
 * All of it runs under the interpreter's lock, except compiled code.
 */
#include "launching.h"

static const char NAME[] = "tile.caller";

static Object *call(Object *self, Object *const *args, intptr_t count)
{
    int64_t key[MOST_PARAMETERS * WORDS];
    Value values[MOST_PARAMETERS];
    Caller *c = PyCapsule_GetPointer(self, NAME);
    if (!c) return 0;
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
    if (!c) return;
    forget_all(c);
    free(c->parameter);
    free(c);
}

static Method METHOD = {"call", call, FASTCALL, 0};

/* Return a function of Python that makes the calls that it knows, and else NotImplemented; None
 * for more parameters than it can read. */
Object *tile_caller(const Parameter *parameter, int32_t count, const Libraries *libraries)
{
    if (count > MOST_PARAMETERS) return Py_IncRef(NONE), NONE;
    Caller *c = calloc(1, sizeof *c);
    Parameter *copy = malloc(((size_t)count + 1) * sizeof *parameter);
    Object *capsule = c && copy ? PyCapsule_New(c, NAME, drop) : PyErr_NoMemory();
    if (!capsule) {
        free(copy);
        free(c);
        return 0;
    }
    memcpy(copy, parameter, (size_t)count * sizeof *parameter);
    c->parameter = copy;
    c->count = count;
    for (int k = 0; k < count; k++) c->inputs += parameter[k].kind != OUTPUT;
    c->libraries = *libraries;
    Object *made = PyCFunction_NewEx(&METHOD, capsule, 0);
    Py_DecRef(capsule);
    return made;
}

/* Learn what to do for arguments like these; return whether that is new, and possible. */
int32_t tile_remember(Object *capsule, const Libraries *libraries, Object *const *args,
                      int32_t count, const Plan *plan)
{
    int64_t key[MOST_PARAMETERS * WORDS];
    Value values[MOST_PARAMETERS];
    Caller *c = PyCapsule_GetPointer(capsule, NAME);
    if (!c || plan->slots > MOST_SLOTS || plan->output_count > MOST_PARAMETERS) return 0;
    c->libraries = *libraries;
    int words = read_all(c, args, count, key, values);
    if (!words || find(c, key, words)) return 0;
    if (c->used >= MOST_PLANS) forget_all(c);
    return add(c, key, words, plan);
}

/* Forget all kinds of arguments. */
void tile_forget(Object *capsule)
{
    Caller *c = PyCapsule_GetPointer(capsule, NAME);
    if (c) forget_all(c);
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
