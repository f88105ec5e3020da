/* The groups of a series, as `plain_groups.py` has them: the same methods, the same answers.

   A group's key and elements stand in one array of entries, found by an open hash table of their
   indexes. A group of one element, as most are, has it in its entry; of a few, in a block of times
   and values; of more than `few`, once they are read, it has a `LongRun` (run.py), which is Python.

   Keys and values are texts, numbers and tuples of them: comparing, hashing or freeing one runs no
   code that could come back here, and none can be part of a cycle. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

#define SWEEP 8
#define BUCKETS 128
#define SHARED 256 /* among so many elements equal values are one object */
#define NONE 0x3fffffffu
#define MOST NONE

enum { EMPTY, ONE, RUN, LONG };
enum { COUNT, DISTINCT, SUM, AVG, OTHER, LEAST, GREATEST, TRUTH };

static PyObject *lengthened, *name_put, *name_remove, *name_shrink, *name_read, *name_size,
    *name_latest, *name_elements;

/* ---- runs: `times`, behind them as many values, of a series that has some, and behind these
   the values' hashes, of a series whose different values are counted ---- */

enum { BARE, VALUED, HASHED };

typedef struct {
    uint32_t length, room;
    int64_t times[];
} Run;

static inline PyObject **values_of(Run *run) { return (PyObject **)(run->times + run->room); }

static inline uint32_t *hashes_of(Run *run) { return (uint32_t *)(values_of(run) + run->room); }

static inline uint32_t short_hash(Py_hash_t hash) {
    uint64_t mixed = (uint64_t)hash * 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(mixed >> 32);
}

static Run *run_with_room(uint32_t room, int valued) {
    size_t each = sizeof(int64_t) + (valued ? sizeof(PyObject *) : 0)
        + (valued == HASHED ? sizeof(uint32_t) : 0);
    Run *run = PyMem_Malloc(sizeof(Run) + room * each);
    if (run == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    run->length = 0;
    run->room = room;
    return run;
}

static uint32_t later_than(const int64_t *times, uint32_t length, int64_t at) {
    uint32_t low = 0, high = length;
    while (low < high) {
        uint32_t middle = (low + high) >> 1;
        if (at < times[middle]) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* The same value where the run has it among its last, else the given one; NULL with an error. */
static PyObject *shared_value(Run *run, PyObject *value, uint32_t hash) {
    const uint32_t *hashes = hashes_of(run);
    for (uint32_t at = run->length > SHARED ? run->length - SHARED : 0; at < run->length; at++) {
        if (hashes[at] != hash) continue;
        PyObject *found = values_of(run)[at];
        int same = PyObject_RichCompareBool(found, value, Py_EQ);
        if (same < 0) return NULL;
        if (same) return found;
    }
    return value;
}

static Run *run_insert(Run *run, int valued, int64_t time, PyObject *value) {
    uint32_t length = run->length, hash = 0;
    if (valued == HASHED) {
        Py_hash_t whole = PyObject_Hash(value);
        if (whole == -1) return NULL;
        hash = short_hash(whole);
        value = shared_value(run, value, hash);
        if (value == NULL) return NULL;
    }
    if (length == run->room) {
        Run *bigger = run_with_room(length < 4 ? 4 : length + length / 2, valued);
        if (bigger == NULL) return NULL;
        memcpy(bigger->times, run->times, length * sizeof(int64_t));
        if (valued) memcpy(values_of(bigger), values_of(run), length * sizeof(PyObject *));
        if (valued == HASHED) memcpy(hashes_of(bigger), hashes_of(run), length * sizeof(uint32_t));
        bigger->length = length;
        PyMem_Free(run);
        run = bigger;
    }
    uint32_t at = length && time < run->times[length - 1] ? later_than(run->times, length, time) : length;
    memmove(run->times + at + 1, run->times + at, (length - at) * sizeof(int64_t));
    run->times[at] = time;
    if (valued) {
        PyObject **values = values_of(run);
        memmove(values + at + 1, values + at, (length - at) * sizeof(PyObject *));
        values[at] = Py_NewRef(value);
    }
    if (valued == HASHED) {
        uint32_t *hashes = hashes_of(run);
        memmove(hashes + at + 1, hashes + at, (length - at) * sizeof(uint32_t));
        hashes[at] = hash;
    }
    run->length++;
    return run;
}

static void run_cut(Run *run, int valued, uint32_t from, uint32_t to) {
    uint32_t left = run->length - to;
    if (from == to) return;
    memmove(run->times + from, run->times + to, left * sizeof(int64_t));
    if (valued) {
        PyObject **values = values_of(run);
        for (uint32_t at = from; at < to; at++) Py_DECREF(values[at]);
        memmove(values + from, values + to, left * sizeof(PyObject *));
    }
    if (valued == HASHED) {
        uint32_t *hashes = hashes_of(run);
        memmove(hashes + from, hashes + to, left * sizeof(uint32_t));
    }
    run->length -= to - from;
}

static void run_free(Run *run, int valued) {
    run_cut(run, valued, 0, run->length);
    PyMem_Free(run);
}

/* ---- the clock ---- */

typedef struct {
    PyObject_HEAD
    long long newest;
} Clock;

static int clock_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "", names)) return -1;
    ((Clock *)self)->newest = -1000000000000000000LL;
    return 0;
}

static PyMemberDef clock_members[] = {
    {"newest", T_LONGLONG, offsetof(Clock, newest), 0, "The latest arrival (µs)."},
    {NULL},
};

static PyTypeObject ClockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._groups.Clock",
    .tp_basicsize = sizeof(Clock),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = clock_init,
    .tp_members = clock_members,
};

/* ---- groups ---- */

typedef struct {
    PyObject *key; /* NULL where the entry is free */
    union {
        struct {
            int64_t time;
            PyObject *value; /* not set in a series without values */
        } one;
        Run *run;
        PyObject *many;
    } held;
    uint32_t hash;
    uint32_t next : 30; /* in the chain of its bucket, or of free entries */
    uint32_t kind : 2;
} Entry;

typedef struct {
    int64_t number;
    uint32_t head;
} Bucket;

typedef struct {
    PyObject_HEAD
    Clock *clock;
    PyObject *lengths;
    long long reach, width, count;
    Py_ssize_t few;
    int valued;
    Entry *entries;
    uint32_t used, room, keys, free, prepared;
    uint32_t *slots; /* an entry's index and 1, or 0 */
    uint32_t mask;
    Bucket *buckets; /* in the order of their numbers */
    Py_ssize_t bucket_count, bucket_room, last_bucket;
    uint32_t *due; /* heads of chains */
    Py_ssize_t due_count, due_room;
} Groups;

static inline int64_t horizon_of(Groups *self) { return self->clock->newest - self->reach; }

static inline int64_t divided(int64_t time, int64_t by) {
    int64_t quotient = time / by;
    return quotient - (time % by < 0);
}

static int rehash(Groups *self, uint32_t size) {
    uint32_t *slots = PyMem_Calloc(size, sizeof(uint32_t));
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t mask = size - 1;
    for (uint32_t index = 0; index < self->used; index++) {
        if (self->entries[index].key == NULL) continue;
        uint32_t slot = self->entries[index].hash & mask;
        while (slots[slot]) slot = (slot + 1) & mask;
        slots[slot] = index + 1;
    }
    PyMem_Free(self->slots);
    self->slots = slots;
    self->mask = mask;
    return 0;
}

/* The entry of a group, NULL without one, perhaps with an error set. */
static Entry *find(Groups *self, PyObject *group, Py_hash_t *hash) {
    *hash = PyObject_Hash(group);
    if (*hash == -1) return NULL;
    uint32_t wanted = short_hash(*hash), slot = wanted & self->mask, index;
    while ((index = self->slots[slot])) {
        Entry *entry = self->entries + index - 1;
        if (entry->hash == wanted) {
            if (entry->key == group) return entry;
            int same = PyObject_RichCompareBool(entry->key, group, Py_EQ);
            if (same < 0) return NULL;
            if (same) return entry;
        }
        slot = (slot + 1) & self->mask;
    }
    return NULL;
}

static Entry *new_entry(Groups *self, PyObject *group, Py_hash_t hash) {
    if ((uint64_t)(self->keys + 1) * 3 > (uint64_t)(self->mask + 1) * 2) {
        if (rehash(self, (self->mask + 1) * 2) < 0) return NULL;
    }
    uint32_t index = self->free;
    if (index != NONE) {
        self->free = self->entries[index].next;
    } else {
        if (self->used == self->room) {
            uint64_t room = self->room < 16 ? 16 : self->room + self->room / 4;
            if (room >= MOST) {
                PyErr_SetString(PyExc_MemoryError, "too many groups");
                return NULL;
            }
            Entry *entries = PyMem_Realloc(self->entries, room * sizeof(Entry));
            if (entries == NULL) {
                PyErr_NoMemory();
                return NULL;
            }
            self->entries = entries;
            self->room = (uint32_t)room;
        }
        index = self->used++;
    }
    Entry *entry = self->entries + index;
    entry->key = Py_NewRef(group);
    entry->hash = short_hash(hash);
    entry->next = NONE;
    entry->kind = EMPTY;
    self->keys++;
    uint32_t slot = entry->hash & self->mask;
    while (self->slots[slot]) slot = (slot + 1) & self->mask;
    self->slots[slot] = index + 1;
    return entry;
}

static void clear_entry(Groups *self, Entry *entry) {
    if (entry->kind == ONE && self->valued) Py_DECREF(entry->held.one.value);
    else if (entry->kind == RUN) run_free(entry->held.run, self->valued);
    else if (entry->kind == LONG) Py_DECREF(entry->held.many);
    entry->kind = EMPTY;
}

static void drop_entry(Groups *self, uint32_t index) {
    Entry *entry = self->entries + index;
    clear_entry(self, entry);
    uint32_t slot = entry->hash & self->mask;
    while (self->slots[slot] != index + 1) slot = (slot + 1) & self->mask;
    /* What stands behind moves up, as far as it may. */
    uint32_t hole = slot;
    for (;;) {
        slot = (slot + 1) & self->mask;
        uint32_t other = self->slots[slot];
        if (!other) break;
        uint32_t home = self->entries[other - 1].hash & self->mask;
        if (((slot - home) & self->mask) >= ((slot - hole) & self->mask)) {
            self->slots[hole] = other;
            hole = slot;
        }
    }
    self->slots[hole] = 0;
    Py_CLEAR(entry->key);
    entry->next = self->free;
    self->free = index;
    self->keys--;
}

/* ---- expiry ---- */

static int link_to_bucket(Groups *self, uint32_t index, int64_t time) {
    int64_t number = divided(time, self->width);
    Py_ssize_t at = self->last_bucket;
    if (at >= self->bucket_count || self->buckets[at].number != number) {
        Py_ssize_t low = 0, high = self->bucket_count;
        while (low < high) {
            Py_ssize_t middle = (low + high) / 2;
            if (self->buckets[middle].number < number) low = middle + 1;
            else high = middle;
        }
        if (low == self->bucket_count || self->buckets[low].number != number) {
            if (self->bucket_count == self->bucket_room) {
                Py_ssize_t room = self->bucket_room ? self->bucket_room * 2 : 8;
                Bucket *buckets = PyMem_Realloc(self->buckets, room * sizeof(Bucket));
                if (buckets == NULL) {
                    PyErr_NoMemory();
                    return -1;
                }
                self->buckets = buckets;
                self->bucket_room = room;
            }
            memmove(self->buckets + low + 1, self->buckets + low,
                    (self->bucket_count - low) * sizeof(Bucket));
            self->buckets[low].number = number;
            self->buckets[low].head = NONE;
            self->bucket_count++;
        }
        at = self->last_bucket = low;
    }
    self->entries[index].next = self->buckets[at].head;
    self->buckets[at].head = index;
    return 0;
}

static PyObject *pass_buckets(Groups *self, PyObject *Py_UNUSED(none)) {
    int64_t edge = divided(horizon_of(self), self->width);
    Py_ssize_t passed = 0;
    while (passed < self->bucket_count && self->buckets[passed].number < edge) passed++;
    if (self->due_count + passed > self->due_room) {
        Py_ssize_t room = self->due_count + passed;
        uint32_t *due = PyMem_Realloc(self->due, room * sizeof(uint32_t));
        if (due == NULL) return PyErr_NoMemory();
        self->due = due;
        self->due_room = room;
    }
    for (Py_ssize_t at = 0; at < passed; at++) self->due[self->due_count++] = self->buckets[at].head;
    self->bucket_count -= passed;
    memmove(self->buckets, self->buckets + passed, self->bucket_count * sizeof(Bucket));
    self->last_bucket = 0;
    return PyLong_FromLongLong((edge + 1) * self->width + self->reach);
}

static int long_attribute(PyObject *many, PyObject *name, long long *found) {
    PyObject *value = PyObject_GetAttr(many, name);
    if (value == NULL) return -1;
    *found = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return *found == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Drops what is over of a group; 1 and the time of its latest element, 0 with nothing left. */
static int shrink(Groups *self, Entry *entry, int64_t *latest) {
    int64_t horizon = horizon_of(self);
    if (entry->kind == EMPTY) return 0;
    if (entry->kind == ONE) {
        *latest = entry->held.one.time;
        if (*latest > horizon) return 1;
        self->count--;
        return 0;
    }
    if (entry->kind == LONG) {
        long long size, last;
        if (long_attribute(entry->held.many, name_size, &size) < 0) return -1;
        if (long_attribute(entry->held.many, name_latest, &last) < 0) return -1;
        if (size && last > horizon) {
            PyObject *limit = PyLong_FromLongLong(horizon);
            if (limit == NULL) return -1;
            PyObject *gone = PyObject_CallMethodOneArg(entry->held.many, name_shrink, limit);
            Py_DECREF(limit);
            if (gone == NULL) return -1;
            long long number = PyLong_AsLongLong(gone);
            Py_DECREF(gone);
            if (number == -1 && PyErr_Occurred()) return -1;
            self->count -= number;
            *latest = last;
            return 1;
        }
        self->count -= size;
        return 0;
    }
    Run *run = entry->held.run;
    uint32_t gone = later_than(run->times, run->length, horizon);
    run_cut(run, self->valued, 0, gone);
    self->count -= gone;
    if (run->length == 0) return 0;
    *latest = run->times[run->length - 1];
    if (run->length == 1) {
        PyObject *value = self->valued ? values_of(run)[0] : NULL;
        PyMem_Free(run); /* with it goes all but the reference to the value */
        entry->held.one.time = *latest;
        entry->held.one.value = value;
        entry->kind = ONE;
    }
    return 1;
}

static PyObject *sweep(Groups *self, PyObject *Py_UNUSED(none)) {
    for (int looked = 0; looked < SWEEP && self->due_count; looked++) {
        uint32_t index = self->due[self->due_count - 1];
        uint32_t next = self->entries[index].next;
        int64_t latest = 0;
        int left = shrink(self, self->entries + index, &latest);
        if (left < 0) return NULL;
        if (next == NONE) self->due_count--;
        else self->due[self->due_count - 1] = next;
        if (!left) drop_entry(self, index);
        else if (link_to_bucket(self, index, latest) < 0) return NULL;
    }
    return PyBool_FromLong(self->due_count > 0);
}

/* ---- elements ---- */

static int lengthen(Groups *self, Entry *entry) {
    Run *run = entry->held.run;
    PyObject *times = PyBytes_FromStringAndSize((char *)run->times, run->length * sizeof(int64_t));
    PyObject *values = self->valued ? PyList_New(run->length) : Py_NewRef(Py_None);
    PyObject *many = NULL;
    if (times != NULL && values != NULL) {
        for (uint32_t at = 0; self->valued && at < run->length; at++)
            PyList_SET_ITEM(values, at, Py_NewRef(values_of(run)[at]));
        many = PyObject_CallFunctionObjArgs(lengthened, times, values, self->lengths, NULL);
    }
    Py_XDECREF(times);
    Py_XDECREF(values);
    if (many == NULL) return -1;
    run_free(run, self->valued);
    entry->held.many = many;
    entry->kind = LONG;
    return 0;
}

static int put_many(Groups *self, PyObject *many, int64_t time, PyObject *value) {
    PyObject *at = PyLong_FromLongLong(time), *horizon = PyLong_FromLongLong(horizon_of(self));
    PyObject *gone = NULL;
    if (at != NULL && horizon != NULL)
        gone = PyObject_CallMethodObjArgs(many, name_put, at, value, horizon, NULL);
    Py_XDECREF(at);
    Py_XDECREF(horizon);
    if (gone == NULL) return -1;
    self->count += 1 - PyLong_AsLongLong(gone);
    Py_DECREF(gone);
    return 0;
}

static int put_one(Groups *self, int64_t time, PyObject *group, PyObject *value) {
    Py_hash_t hash;
    Entry *entry = find(self, group, &hash);
    if (entry == NULL) {
        if (PyErr_Occurred() || (entry = new_entry(self, group, hash)) == NULL) return -1;
        if (link_to_bucket(self, (uint32_t)(entry - self->entries), time) < 0) return -1;
    }
    if (entry->kind == LONG) return put_many(self, entry->held.many, time, value);
    if (entry->kind == EMPTY) {
        entry->held.one.time = time;
        entry->held.one.value = self->valued ? Py_NewRef(value) : NULL;
        entry->kind = ONE;
        self->count++;
        return 0;
    }
    if (entry->kind == ONE) {
        Run *run = run_with_room(2, self->valued);
        if (run == NULL) return -1;
        run = run_insert(run, self->valued, entry->held.one.time, entry->held.one.value);
        if (run == NULL) return -1;
        if (self->valued) Py_DECREF(entry->held.one.value);
        entry->held.run = run;
        entry->kind = RUN;
    }
    Run *run = run_insert(entry->held.run, self->valued, time, value);
    if (run == NULL) return -1;
    entry->held.run = run;
    self->count++;
    int64_t horizon = horizon_of(self);
    if (run->times[run->length >> 1] <= horizon) {
        uint32_t gone = later_than(run->times, run->length, horizon);
        run_cut(run, self->valued, 0, gone);
        self->count -= gone;
    }
    return 0;
}

static int parsed_time(PyObject *given, int64_t *time) {
    *time = PyLong_AsLongLong(given);
    return *time == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *put(Groups *self, PyObject *const *args, Py_ssize_t count) {
    int64_t time;
    if (count != 3) return PyErr_Format(PyExc_TypeError, "put takes 3 arguments");
    if (parsed_time(args[0], &time) < 0 || put_one(self, time, args[1], args[2]) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *take(Groups *self, PyObject *const *args, Py_ssize_t count) {
    int64_t time;
    Py_hash_t hash;
    if (count != 3) return PyErr_Format(PyExc_TypeError, "take takes 3 arguments");
    if (parsed_time(args[0], &time) < 0) return NULL;
    Entry *entry = find(self, args[1], &hash);
    if (entry == NULL) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    if (entry->kind == LONG) {
        PyObject *removed =
            PyObject_CallMethodObjArgs(entry->held.many, name_remove, args[0], args[2], NULL);
        if (removed == NULL) return NULL;
        self->count -= removed == Py_True;
        Py_DECREF(removed);
    } else if (entry->kind == ONE && entry->held.one.time == time) {
        int same = !self->valued || PyObject_RichCompareBool(entry->held.one.value, args[2], Py_EQ);
        if (same < 0) return NULL;
        if (same) {
            clear_entry(self, entry);
            self->count--;
        }
    } else if (entry->kind == RUN) {
        Run *run = entry->held.run;
        for (uint32_t at = later_than(run->times, run->length, time);
             at > 0 && run->times[at - 1] == time; at--) {
            int same =
                !self->valued || PyObject_RichCompareBool(values_of(run)[at - 1], args[2], Py_EQ);
            if (same < 0) return NULL;
            if (same) {
                run_cut(run, self->valued, at - 1, at);
                self->count--;
                break;
            }
        }
    }
    Py_RETURN_NONE;
}

/* ---- readers ---- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Groups *groups;
    PyObject *window, *recount, *of_none;
    long long over;
    double divisor;
    int function;
} Reader;

/* By a table of the first of each, so that most values need one step: equal ones are shared. */
static PyObject *count_hashed(PyObject **values, const uint32_t *hashes, uint32_t count) {
    uint16_t table[1024];
    uint32_t mask = 15, different = 0;
    while (mask < 2 * count) mask = 2 * mask + 1;
    memset(table, 0, (mask + 1) * sizeof *table);
    for (uint32_t at = 0; at < count; at++) {
        uint32_t slot = hashes[at] & mask;
        int seen = 0;
        for (; !seen && table[slot]; slot = (slot + 1) & mask) {
            uint32_t other = table[slot] - 1;
            if (hashes[other] != hashes[at]) continue;
            seen = values[other] == values[at] ? 1
                : PyObject_RichCompareBool(values[other], values[at], Py_EQ);
            if (seen < 0) return NULL;
        }
        if (seen) continue;
        table[slot] = (uint16_t)(at + 1);
        different++;
    }
    return PyLong_FromUnsignedLong(different);
}

/* Whether all are whole numbers with a sum of 64 bits. */
static int small_sum(PyObject **values, uint32_t count, long long *total) {
    *total = 0;
    for (uint32_t at = 0; at < count; at++) {
        int overflow = 0;
        if (!PyLong_CheckExact(values[at])) return 0;
        long long value = PyLong_AsLongLongAndOverflow(values[at], &overflow);
        if (overflow || __builtin_add_overflow(*total, value, total)) return 0;
    }
    return 1;
}

static PyObject *recounted(Reader *self, PyObject **values, uint32_t count) {
    PyObject *list = PyList_New(count);
    if (list == NULL) return NULL;
    for (uint32_t at = 0; at < count; at++) PyList_SET_ITEM(list, at, Py_NewRef(values[at]));
    PyObject *found = PyObject_CallOneArg(self->recount, list);
    Py_DECREF(list);
    return found;
}

/* The least or the greatest, when all are whole numbers of 64 bits; NULL when not. */
static PyObject *small_extreme(PyObject **values, uint32_t count, int least) {
    PyObject *found = NULL;
    long long best = 0;
    for (uint32_t at = 0; at < count; at++) {
        int overflow = 0;
        if (!PyLong_CheckExact(values[at])) return NULL;
        long long value = PyLong_AsLongLongAndOverflow(values[at], &overflow);
        if (overflow) return NULL;
        if (found == NULL || (least ? value < best : value > best)) {
            best = value;
            found = values[at];
        }
    }
    return Py_XNewRef(found);
}

static PyObject *aggregate(Reader *self, PyObject **values, const uint32_t *hashes, uint32_t count) {
    long long total;
    if (self->function == COUNT) return PyLong_FromUnsignedLong(count);
    if (count == 0) return Py_NewRef(self->of_none);
    if (self->function == DISTINCT) {
        if (count == 1) return PyLong_FromLong(1);
        if (hashes != NULL && count <= 512) return count_hashed(values, hashes, count);
    }
    if (count == 1 && self->function >= LEAST) return Py_NewRef(values[0]);
    if (self->function == LEAST || self->function == GREATEST) {
        PyObject *found = small_extreme(values, count, self->function == LEAST);
        if (found != NULL) return found;
    }
    if (self->function == SUM && small_sum(values, count, &total)) return PyLong_FromLongLong(total);
    /* Both are whole and exact as doubles, so that their quotient is rounded once. */
    if (self->function == AVG && small_sum(values, count, &total) && llabs(total) < (1LL << 53)
        && self->divisor * count < (double)(1LL << 53))
        return PyFloat_FromDouble((double)total / (self->divisor * count));
    return recounted(self, values, count);
}

static PyObject *reader_call(PyObject *callable, PyObject *const *args, size_t flags,
                             PyObject *Py_UNUSED(names)) {
    Reader *self = (Reader *)callable;
    Groups *groups = self->groups;
    int64_t at;
    Py_hash_t hash;
    if (PyVectorcall_NARGS(flags) != 2) return PyErr_Format(PyExc_TypeError, "2 arguments, please");
    if (parsed_time(args[1], &at) < 0) return NULL;
    Entry *entry = find(groups, args[0], &hash);
    if (entry == NULL) return PyErr_Occurred() ? NULL : aggregate(self, NULL, NULL, 0);
    if (entry->kind == RUN && entry->held.run->length > groups->few && lengthen(groups, entry) < 0)
        return NULL;
    if (entry->kind == LONG)
        return PyObject_CallMethodObjArgs(entry->held.many, name_read, self->window, args[1], NULL);
    if (entry->kind == ONE) {
        int64_t time = entry->held.one.time;
        return aggregate(self, &entry->held.one.value, NULL, time <= at && time > at - self->over);
    }
    if (entry->kind == EMPTY) return aggregate(self, NULL, NULL, 0);
    Run *run = entry->held.run;
    const int64_t *times = run->times;
    uint32_t length = run->length, low = 0, high = length;
    if (length && times[0] <= at - self->over) low = later_than(times, length, at - self->over);
    if (length && times[length - 1] > at) high = later_than(times, length, at);
    return aggregate(self, values_of(run) + low,
                     groups->valued == HASHED ? hashes_of(run) + low : NULL,
                     high > low ? high - low : 0);
}

static void reader_dealloc(PyObject *object) {
    Reader *self = (Reader *)object;
    Py_XDECREF(self->groups);
    Py_XDECREF(self->window);
    Py_XDECREF(self->recount);
    Py_XDECREF(self->of_none);
    Py_TYPE(object)->tp_free(object);
}

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._groups.Reader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Reader, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = reader_dealloc,
};

static PyObject *new_reader(Groups *self, PyObject *args) {
    PyObject *window, *recount;
    const char *function;
    long long over;
    int scale;
    if (!PyArg_ParseTuple(args, "OsLOi", &window, &function, &over, &recount, &scale)) return NULL;
    Reader *reader = PyObject_New(Reader, &ReaderType);
    if (reader == NULL) return NULL;
    reader->call = reader_call;
    reader->groups = (Groups *)Py_NewRef(self);
    reader->window = Py_NewRef(window);
    reader->recount = Py_NewRef(recount);
    reader->over = over;
    reader->divisor = 1;
    for (int digit = 0; digit < scale; digit++) reader->divisor *= 10;
    reader->function = OTHER;
    if (!self->valued || !strcmp(function, "count")) reader->function = COUNT;
    else if (!strcmp(function, "distinct")) reader->function = DISTINCT;
    else if (scale >= 0 && !strcmp(function, "sum")) reader->function = SUM;
    else if (scale >= 0 && !strcmp(function, "avg")) reader->function = AVG;
    else if (!strcmp(function, "min")) reader->function = LEAST;
    else if (!strcmp(function, "max")) reader->function = GREATEST;
    else if (!strcmp(function, "any") || !strcmp(function, "all")) reader->function = TRUTH;
    PyObject *nothing = PyTuple_New(0);
    reader->of_none = nothing == NULL ? NULL : PyObject_CallOneArg(recount, nothing);
    Py_XDECREF(nothing);
    if (reader->of_none == NULL) Py_CLEAR(reader);
    return (PyObject *)reader;
}

static PyObject *prepare(Groups *self, PyObject *Py_UNUSED(none)) {
    for (; self->prepared < self->used; self->prepared++) {
        Entry *entry = self->entries + self->prepared;
        if (entry->key == NULL || entry->kind != RUN || entry->held.run->length <= self->few) continue;
        if (lengthen(self, entry) < 0) return NULL;
        Py_RETURN_FALSE;
    }
    self->prepared = 0;
    Py_RETURN_TRUE;
}

/* ---- all of it at once ---- */

static int append_times(PyObject *bytes, const int64_t *times, Py_ssize_t count) {
    Py_ssize_t size = PyByteArray_GET_SIZE(bytes);
    if (PyByteArray_Resize(bytes, size + count * (Py_ssize_t)sizeof(int64_t)) < 0) return -1;
    memcpy(PyByteArray_AS_STRING(bytes) + size, times, count * sizeof(int64_t));
    return 0;
}

static int append_new(PyObject *list, PyObject *item) {
    if (item == NULL) return -1;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed;
}

static int dump_entry(Groups *self, Entry *entry, PyObject *times, PyObject *values) {
    if (entry->kind == ONE) {
        if (append_times(times, &entry->held.one.time, 1) < 0) return -1;
        return self->valued ? PyList_Append(values, entry->held.one.value) : 0;
    }
    if (entry->kind == RUN) {
        Run *run = entry->held.run;
        for (uint32_t at = 0; self->valued && at < run->length; at++)
            if (PyList_Append(values, values_of(run)[at]) < 0) return -1;
        return append_times(times, run->times, run->length);
    }
    if (entry->kind == EMPTY) return 0;
    PyObject *elements = PyObject_CallMethodNoArgs(entry->held.many, name_elements);
    if (elements == NULL) return -1;
    PyObject *element;
    int failed = 0;
    while (!failed && (element = PyIter_Next(elements))) {
        int64_t time;
        failed = parsed_time(PyTuple_GET_ITEM(element, 0), &time) < 0
            || append_times(times, &time, 1) < 0
            || (self->valued && PyList_Append(values, PyTuple_GET_ITEM(element, 1)) < 0);
        Py_DECREF(element);
    }
    Py_DECREF(elements);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static PyObject *dump(Groups *self, PyObject *const *args, Py_ssize_t given) {
    Py_ssize_t start = given == 2 ? PyLong_AsSsize_t(args[0]) : -1;
    Py_ssize_t most = given == 2 ? PyLong_AsSsize_t(args[1]) * (Py_ssize_t)sizeof(int64_t) : -1;
    if (start < 0 || most < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "dump takes start and most");
    PyObject *keys = PyList_New(0), *counts = PyList_New(0), *times = PyByteArray_FromStringAndSize(NULL, 0);
    PyObject *values = PyList_New(0), *found = NULL;
    Py_ssize_t index = start;
    if (keys == NULL || counts == NULL || times == NULL || values == NULL) goto end;
    for (; index < self->used && PyByteArray_GET_SIZE(times) < most; index++) {
        Entry *entry = self->entries + index;
        Py_ssize_t before = PyByteArray_GET_SIZE(times);
        if (entry->key == NULL) continue;
        if (dump_entry(self, entry, times, values) < 0) goto end;
        Py_ssize_t count = (PyByteArray_GET_SIZE(times) - before) / (Py_ssize_t)sizeof(int64_t);
        if (count == 0) continue;
        if (PyList_Append(keys, entry->key) < 0) goto end;
        if (append_new(counts, PyLong_FromSsize_t(count)) < 0) goto end;
    }
    found = Py_BuildValue("n(OOOO)", index < self->used ? index : -1, keys, counts, times, values);
end:
    Py_XDECREF(keys);
    Py_XDECREF(counts);
    Py_XDECREF(times);
    Py_XDECREF(values);
    return found;
}

static int load_all(Groups *self, PyObject *keys, PyObject *counts, const Py_buffer *times,
                    PyObject *values) {
    Py_ssize_t at = 0, length = times->len / (Py_ssize_t)sizeof(int64_t), total = 0;
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(counts); index++) {
        Py_ssize_t count = PyLong_AsSsize_t(PyList_GET_ITEM(counts, index));
        if (count == -1 && PyErr_Occurred()) return -1;
        if (count < 0 || count > length - total) total = length + 1;
        else total += count;
        if (total > length) break;
    }
    if (total != length || PyList_GET_SIZE(keys) != PyList_GET_SIZE(counts)
        || (self->valued && PyList_GET_SIZE(values) != length)) {
        PyErr_SetString(PyExc_ValueError, "the columns are of different lengths");
        return -1;
    }
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(keys); index++) {
        Py_ssize_t end = at + PyLong_AsSsize_t(PyList_GET_ITEM(counts, index));
        for (; at < end; at++) {
            int64_t time;
            PyObject *value = self->valued ? PyList_GET_ITEM(values, at) : Py_True;
            memcpy(&time, (char *)times->buf + at * sizeof(int64_t), sizeof(int64_t));
            if (put_one(self, time, PyList_GET_ITEM(keys, index), value) < 0) return -1;
        }
    }
    return 0;
}

static PyObject *load(Groups *self, PyObject *columns) {
    PyObject *keys, *counts, *values;
    Py_buffer times;
    if (!PyTuple_Check(columns)) return PyErr_Format(PyExc_TypeError, "columns are a tuple");
    if (!PyArg_ParseTuple(columns, "O!O!y*O!", &PyList_Type, &keys, &PyList_Type, &counts, &times,
                          &PyList_Type, &values))
        return NULL;
    int failed = load_all(self, keys, counts, &times, values);
    PyBuffer_Release(&times);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static int groups_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    Groups *self = (Groups *)object;
    static char *names[] = {"clock", "reach", "valued", "lengths", "few", NULL};
    PyObject *clock, *lengths;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!LpO!n", names, &ClockType, &clock, &self->reach,
                                     &self->valued, &PyTuple_Type, &lengths, &self->few))
        return -1;
    if (self->clock != NULL || self->reach < BUCKETS) {
        PyErr_SetString(PyExc_ValueError, "a new series reaches back for some time");
        return -1;
    }
    self->clock = (Clock *)Py_NewRef(clock);
    self->lengths = Py_NewRef(lengths);
    if (self->valued && PyTuple_GET_SIZE(lengths)) self->valued = HASHED;
    self->width = self->reach / BUCKETS;
    self->free = NONE;
    return rehash(self, 8);
}

static void groups_dealloc(PyObject *object) {
    Groups *self = (Groups *)object;
    for (uint32_t index = 0; index < self->used; index++) {
        if (self->entries[index].key == NULL) continue;
        clear_entry(self, self->entries + index);
        Py_DECREF(self->entries[index].key);
    }
    PyMem_Free(self->entries);
    PyMem_Free(self->slots);
    PyMem_Free(self->buckets);
    PyMem_Free(self->due);
    Py_XDECREF(self->clock);
    Py_XDECREF(self->lengths);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *get_keys(Groups *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLong(self->keys);
}

static PyMethodDef groups_methods[] = {
    {"put", (PyCFunction)(void (*)(void))put, METH_FASTCALL, "Takes in one element."},
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "Takes out one element."},
    {"reader", (PyCFunction)new_reader, METH_VARARGS, "How one window is read."},
    {"pass_buckets", (PyCFunction)pass_buckets, METH_NOARGS, "Marks the groups whose time has come."},
    {"sweep", (PyCFunction)sweep, METH_NOARGS, "Looks at a few of the groups whose time has come."},
    {"prepare", (PyCFunction)prepare, METH_NOARGS, "Makes one group of many quick to read."},
    {"dump", (PyCFunction)(void (*)(void))dump, METH_FASTCALL, "Some of the groups, as columns."},
    {"load", (PyCFunction)load, METH_O, "Takes in what `dump` gave."},
    {NULL},
};

static PyMemberDef groups_members[] = {
    {"reach", T_LONGLONG, offsetof(Groups, reach), 0, NULL},
    {"entries", T_LONGLONG, offsetof(Groups, count), READONLY, NULL},
    {NULL},
};

static PyObject *get_clock(Groups *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(self->clock);
}

static int set_clock(Groups *self, PyObject *clock, void *Py_UNUSED(closure)) {
    if (clock == NULL || !Py_IS_TYPE(clock, &ClockType)) {
        PyErr_SetString(PyExc_TypeError, "it needs a clock");
        return -1;
    }
    Py_SETREF(self->clock, (Clock *)Py_NewRef(clock));
    return 0;
}

static PyObject *get_lengths(Groups *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(self->lengths);
}

static int set_lengths(Groups *self, PyObject *lengths, void *Py_UNUSED(closure)) {
    if (lengths == NULL || !PyTuple_Check(lengths)) {
        PyErr_SetString(PyExc_TypeError, "lengths are a tuple");
        return -1;
    }
    Py_SETREF(self->lengths, Py_NewRef(lengths));
    return 0;
}

static PyGetSetDef groups_getset[] = {
    {"clock", (getter)get_clock, (setter)set_clock, NULL, NULL},
    {"lengths", (getter)get_lengths, (setter)set_lengths, NULL, NULL},
    {"keys", (getter)get_keys, NULL, "How many groups are held.", NULL},
    {NULL},
};

static PyTypeObject GroupsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._groups.Groups",
    .tp_basicsize = sizeof(Groups),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = groups_init,
    .tp_dealloc = groups_dealloc,
    .tp_methods = groups_methods,
    .tp_members = groups_members,
    .tp_getset = groups_getset,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tollkeeper.engine.velocity._groups",
    .m_doc = "The groups of a series, in C.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__groups(void) {
    static const struct {
        PyObject **name;
        const char *text;
    } texts[] = {
        {&name_put, "put"},       {&name_remove, "remove"}, {&name_shrink, "shrink"},
        {&name_read, "read"},     {&name_size, "size"},     {&name_latest, "latest"},
        {&name_elements, "elements"},
    };
    for (size_t at = 0; at < sizeof texts / sizeof *texts; at++)
        if ((*texts[at].name = PyUnicode_InternFromString(texts[at].text)) == NULL) return NULL;
    if (PyType_Ready(&ClockType) < 0 || PyType_Ready(&GroupsType) < 0 || PyType_Ready(&ReaderType) < 0)
        return NULL;
    PyObject *runs = PyImport_ImportModule("tollkeeper.engine.velocity.run");
    if (runs == NULL) return NULL;
    lengthened = PyObject_GetAttrString(runs, "lengthened");
    Py_DECREF(runs);
    PyObject *module = PyModule_Create(&definition);
    if (lengthened == NULL || module == NULL
        || PyModule_AddObjectRef(module, "Clock", (PyObject *)&ClockType) < 0
        || PyModule_AddObjectRef(module, "Groups", (PyObject *)&GroupsType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
