/* `Groups` of groups.py in C: the same methods with the same results.

   Groups are in one array of entries, which an open-addressing hash table of indexes finds by key.
   A group of one element, as most are, has it in its entry (ONE); one of a few elements has a run
   (RUN); one of more than `few` elements gets a long run when it is read, or when an element changes
   far from its end (LONG). A long run whose partial aggregates don't fit into 64 bits becomes a
   `LongRun` of run.py, in Python (ODD). */

#include "_runs.h"
#include <structmember.h>

#define SWEEP 8
#define BUCKETS 128
#define NONE 0x1fffffffu
#define FAR_BACK 32768    /* an element further than this from the end is only changed in a long run */
#define PUT_EXPIRES 4     /* the most expired elements that adding one removes from a long run */
#define SWEEP_EXPIRES 500 /* the same when the group comes up for expiry */
#define MOST NONE

enum { EMPTY, ONE, RUN, LONG, ODD };
enum { COUNT, DISTINCT, SUM, AVG, OTHER, MIN, MAX, ANY, ALL };

static PyObject *lengthened, *name_put, *name_remove, *name_shrink, *name_read, *name_size,
    *name_latest, *name_elements;

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
    PyObject *key; /* NULL in a free entry */
    union {
        struct {
            int64_t time;
            PyObject *value; /* not set in a series without values */
        } one;
        Run *run;
        LongRun *many;
        PyObject *odd;
    } held;
    uint32_t hash;
    uint32_t next : 29; /* next index in the chain of its bucket, or of free entries */
    uint32_t kind : 3;
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
    uint32_t *slots; /* an entry's index plus 1, or 0 */
    uint32_t mask;
    Bucket *buckets; /* in the order of their numbers */
    Py_ssize_t bucket_count, bucket_room, last_bucket;
    uint32_t *due; /* heads of chains */
    Py_ssize_t due_count, due_room;
    PyObject *last; /* the group found last, and its entry: a group is put, then read */
    uint32_t last_index;
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

/* The entry of a group of this hash; NULL when there is none, or with an error set. */
static Entry *find_hashed(Groups *self, PyObject *group, uint32_t wanted) {
    if (group == self->last) return self->entries + self->last_index;
    uint32_t slot = wanted & self->mask, index;
    while ((index = self->slots[slot])) {
        Entry *entry = self->entries + index - 1;
        if (entry->hash == wanted) {
            int same = entry->key == group ? 1 : PyObject_RichCompareBool(entry->key, group, Py_EQ);
            if (same < 0) return NULL;
            if (same) {
                Py_XSETREF(self->last, Py_NewRef(group));
                self->last_index = index - 1;
                return entry;
            }
        }
        slot = (slot + 1) & self->mask;
    }
    return NULL;
}

/* The entry of a group; NULL when there is none, or with an error set. */
static Entry *find(Groups *self, PyObject *group) {
    uint32_t hash;
    if (group == self->last) return self->entries + self->last_index;
    return short_hash(group, &hash) < 0 ? NULL : find_hashed(self, group, hash);
}

static Entry *new_entry(Groups *self, PyObject *group, uint32_t hash) {
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
    entry->hash = hash;
    entry->next = NONE;
    entry->kind = EMPTY;
    self->keys++;
    uint32_t slot = entry->hash & self->mask;
    while (self->slots[slot]) slot = (slot + 1) & self->mask;
    self->slots[slot] = index + 1;
    Py_XSETREF(self->last, Py_NewRef(group));
    self->last_index = index;
    return entry;
}

static void free_many(LongRun *many, int valued);

static void clear_entry(Groups *self, Entry *entry) {
    if (entry->kind == ONE && self->valued) Py_DECREF(entry->held.one.value);
    else if (entry->kind == RUN) run_free(entry->held.run, self->valued);
    else if (entry->kind == LONG) free_many(entry->held.many, self->valued);
    else if (entry->kind == ODD) Py_DECREF(entry->held.odd);
    entry->kind = EMPTY;
}

static void drop_entry(Groups *self, uint32_t index) {
    Entry *entry = self->entries + index;
    clear_entry(self, entry);
    uint32_t slot = entry->hash & self->mask;
    while (self->slots[slot] != index + 1) slot = (slot + 1) & self->mask;
    /* Later entries of the same cluster move up, but not before their home slot. */
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
    if (self->last_index == index) Py_CLEAR(self->last);
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
    if (passed > 0) {
        memmove(self->buckets, self->buckets + passed, self->bucket_count * sizeof(Bucket));
    }
    self->last_bucket = 0;
    return PyLong_FromLongLong((edge + 1) * self->width + self->reach);
}

static int odd_attribute(PyObject *odd, PyObject *name, long long *found) {
    PyObject *value = PyObject_GetAttr(odd, name);
    if (value == NULL) return -1;
    *found = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return *found == -1 && PyErr_Occurred() ? -1 : 0;
}

static int trim_long(Groups *self, LongRun *many, uint32_t most);

/* Removes a group's expired elements: 1 and its latest element's time, 0 when none is left, or -1. */
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
        LongRun *many = entry->held.many;
        *latest = many->latest;
        if (many->size == 0 || *latest <= horizon) {
            self->count -= many->size;
            return 0;
        }
        return trim_long(self, many, SWEEP_EXPIRES) < 0 ? -1 : 1;
    }
    if (entry->kind == ODD) {
        long long size, last;
        if (odd_attribute(entry->held.odd, name_size, &size) < 0) return -1;
        if (odd_attribute(entry->held.odd, name_latest, &last) < 0) return -1;
        if (size && last > horizon) {
            PyObject *limit = PyLong_FromLongLong(horizon);
            if (limit == NULL) return -1;
            PyObject *gone = PyObject_CallMethodOneArg(entry->held.odd, name_shrink, limit);
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

static int distinct_put(LongRun *many, int64_t time, PyObject **value);
static int distinct_take(LongRun *many, int64_t time, PyObject *value);
static int distinct_cut(LongRun *many, uint32_t gone);
static int make_distinct(Groups *self, LongRun *many, int64_t over);

/* The blocks of a long run have no hashes: its `distinct->seen` has each value once. */
static inline int block_layout(int valued) { return valued == HASHED ? VALUED : valued; }

static int put_long(Groups *self, LongRun *many, int64_t time, PyObject *value) {
    if (many->distinct != NULL && distinct_put(many, time, &value) < 0) return -1;
    return long_insert(many, block_layout(self->valued), time, value);
}

/* 1 when there was such an element, 0 when not, -1 with an error. */
static int take_long(Groups *self, LongRun *many, int64_t time, PyObject *value) {
    int removed = long_remove(many, block_layout(self->valued), time, value);
    if (removed == 1 && many->distinct != NULL && distinct_take(many, time, value) < 0) return -1;
    return removed;
}

/* Removes at most `most` of the expired elements. */
static int trim_long(Groups *self, LongRun *many, uint32_t most) {
    uint32_t gone;
    while (most && (gone = long_over(many, horizon_of(self)))) {
        if (gone > most) gone = most;
        if (many->distinct != NULL && distinct_cut(many, gone) < 0) return -1;
        long_cut(many, block_layout(self->valued), gone);
        self->count -= gone;
        most -= gone;
    }
    return 0;
}

/* Turns a run into a long run. */
static int lengthen(Groups *self, Entry *entry) {
    Run *run = entry->held.run;
    LongRun *many = long_new((uint32_t)self->few);
    if (many == NULL) return -1;
    if (self->valued && run_sort(run, self->valued) < 0) {
        long_free(many, block_layout(self->valued));
        return -1;
    }
    for (uint32_t at = 0; at < run->length; at++) {
        PyObject *value = self->valued ? values_of(run)[at] : NULL;
        if (long_insert(many, block_layout(self->valued), run->times[at], value) < 0) {
            long_free(many, block_layout(self->valued));
            return -1;
        }
    }
    run_free(run, self->valued);
    entry->held.many = many;
    entry->kind = LONG;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->lengths); at++)
        if (make_distinct(self, many, PyLong_AsLongLong(PyTuple_GET_ITEM(self->lengths, at))) < 0)
            return -1;
    return 0;
}

static inline int is_far_back(Run *run, int64_t time) {
    return run->length > FAR_BACK && time < run->times[run->length - FAR_BACK - 1];
}

/* Turns a long run into one in Python, whose integers are unbounded. */
static int make_odd(Groups *self, Entry *entry) {
    LongRun *many = entry->held.many;
    PyObject *times = PyBytes_FromStringAndSize(NULL, many->size * sizeof(int64_t));
    PyObject *values = PyList_New(many->size), *odd = NULL;
    if (times != NULL && values != NULL) {
        Py_ssize_t at = 0;
        for (uint32_t block = 0; block < many->count; block++) {
            Run *run = many->blocks[block];
            memcpy(PyBytes_AS_STRING(times) + at * sizeof(int64_t), run->times,
                   run->length * sizeof(int64_t));
            for (uint32_t each = 0; each < run->length; each++)
                PyList_SET_ITEM(values, at++, Py_NewRef(values_of(run)[each]));
        }
        odd = PyObject_CallFunctionObjArgs(lengthened, times, values, self->lengths, NULL);
    }
    Py_XDECREF(times);
    Py_XDECREF(values);
    if (odd == NULL) return -1;
    free_many(many, self->valued);
    entry->held.odd = odd;
    entry->kind = ODD;
    return 0;
}

static int put_odd(Groups *self, PyObject *odd, int64_t time, PyObject *value) {
    PyObject *at = PyLong_FromLongLong(time), *horizon = PyLong_FromLongLong(horizon_of(self));
    PyObject *gone = NULL;
    if (at != NULL && horizon != NULL)
        gone = PyObject_CallMethodObjArgs(odd, name_put, at, value, horizon, NULL);
    Py_XDECREF(at);
    Py_XDECREF(horizon);
    if (gone == NULL) return -1;
    self->count += 1 - PyLong_AsLongLong(gone);
    Py_DECREF(gone);
    return 0;
}

static int put_entry(Groups *self, Entry *entry, int64_t time, PyObject *value) {
    if (entry->kind == RUN && is_far_back(entry->held.run, time) && lengthen(self, entry) < 0) return -1;
    if (entry->kind == LONG) {
        if (put_long(self, entry->held.many, time, value) < 0) return -1;
        self->count++;
        return trim_long(self, entry->held.many, PUT_EXPIRES);
    }
    if (entry->kind == ODD) return put_odd(self, entry->held.odd, time, value);
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

static int put_hashed(Groups *self, int64_t time, PyObject *group, uint32_t hash, PyObject *value) {
    Entry *entry = find_hashed(self, group, hash);
    if (entry == NULL) {
        if (PyErr_Occurred() || (entry = new_entry(self, group, hash)) == NULL) return -1;
        if (link_to_bucket(self, (uint32_t)(entry - self->entries), time) < 0) return -1;
    }
    return put_entry(self, entry, time, value);
}

static int put_one(Groups *self, int64_t time, PyObject *group, PyObject *value) {
    uint32_t hash;
    return short_hash(group, &hash) < 0 ? -1 : put_hashed(self, time, group, hash, value);
}

/* Removes one element, if there is such a one. */
static int take_entry(Groups *self, Entry *entry, int64_t time, PyObject *value) {
    int removed = 0;
    /* Of values, also where only the first of many of one time is far back: each may be looked at. */
    if (entry->kind == RUN && is_far_back(entry->held.run, self->valued ? time - 1 : time)
        && lengthen(self, entry) < 0)
        return -1;
    if (entry->kind == LONG) {
        removed = take_long(self, entry->held.many, time, value);
    } else if (entry->kind == RUN) {
        removed = run_remove(entry->held.run, self->valued, time, value);
    } else if (entry->kind == ONE && entry->held.one.time == time) {
        removed = !self->valued || PyObject_RichCompareBool(entry->held.one.value, value, Py_EQ);
        if (removed == 1) clear_entry(self, entry);
    } else if (entry->kind == ODD) {
        PyObject *at = PyLong_FromLongLong(time), *found = NULL;
        if (at != NULL)
            found = PyObject_CallMethodObjArgs(entry->held.odd, name_remove, at, value, NULL);
        Py_XDECREF(at);
        removed = found == NULL ? -1 : found == Py_True;
        Py_XDECREF(found);
    }
    if (removed < 0) return -1;
    self->count -= removed;
    return 0;
}

/* ---- distinct values in a window, as in distinct.py ---- */

typedef struct {
    int64_t over, folded;
    Py_ssize_t base;
    LongRun *begins, *ends;
} Coverage;

struct Distinct {
    Groups *seen; /* each value's times */
    Py_ssize_t count;
    Coverage coverages[];
};

static PyTypeObject GroupsType;

static int mark(Coverage *coverage, int64_t time, int by) {
    if (time <= coverage->folded) {
        coverage->base += by;
        return 0;
    }
    /* An interval that ends where another begins is merged with it. */
    int removed = long_remove(by > 0 ? coverage->ends : coverage->begins, BARE, time, NULL);
    if (removed) return removed < 0 ? -1 : 0;
    return long_insert(by > 0 ? coverage->begins : coverage->ends, BARE, time, NULL);
}

/* Adds (`by` 1) or removes (`by` -1) a time of a value, whose other times are in the entry. */
static int change_coverages(Distinct *distinct, Entry *entry, int64_t time, int by) {
    int64_t before = 0, after = 0;
    int is_before = 0, is_after = 0;
    if (entry->kind == ONE) {
        int64_t one = entry->held.one.time;
        is_before = one <= time;
        is_after = !is_before;
        before = after = one;
    } else if (entry->kind == RUN) {
        is_before = run_latest(entry->held.run, time, &before);
        is_after = run_earliest(entry->held.run, time, &after);
    } else if (entry->kind == LONG) {
        is_before = long_latest(entry->held.many, time, &before);
        is_after = long_earliest(entry->held.many, time, &after);
    }
    for (Py_ssize_t at = 0; at < distinct->count; at++) {
        Coverage *coverage = distinct->coverages + at;
        int64_t begin = time, end = time + coverage->over;
        if (is_before && before + coverage->over > begin) begin = before + coverage->over;
        if (is_after && after < end) end = after;
        if (begin >= end) continue;
        if (mark(coverage, begin, by) < 0 || mark(coverage, end, -by) < 0) return -1;
    }
    return 0;
}

/* Replaces the value by the equal object that `seen` holds, so that equal values share one. */
static int distinct_put(LongRun *many, int64_t time, PyObject **value) {
    Groups *seen = many->distinct->seen;
    uint32_t hash;
    if (short_hash(*value, &hash) < 0) return -1;
    Entry *entry = find_hashed(seen, *value, hash);
    if (entry == NULL && (PyErr_Occurred() || (entry = new_entry(seen, *value, hash)) == NULL))
        return -1;
    *value = entry->key;
    if (change_coverages(many->distinct, entry, time, 1) < 0) return -1;
    if (put_entry(seen, entry, time, NULL) < 0) return -1;
    if (entry->kind == RUN && entry->held.run->length > seen->few) return lengthen(seen, entry);
    return 0;
}

static int forget_seen(Groups *seen, int64_t time, PyObject *value, Entry **left) {
    Entry *entry = find(seen, value);
    if (entry == NULL) return PyErr_Occurred() ? -1 : 0;
    if (take_entry(seen, entry, time, NULL) < 0) return -1;
    if (entry->kind == RUN && entry->held.run->length == 1) {
        Run *run = entry->held.run;
        entry->held.one.time = run->times[0];
        entry->kind = ONE;
        PyMem_Free(run);
    } else if (entry->kind == LONG && entry->held.many->size == 0) {
        clear_entry(seen, entry);
    }
    *left = entry;
    return 0;
}

static int distinct_take(LongRun *many, int64_t time, PyObject *value) {
    Groups *seen = many->distinct->seen;
    Entry *entry = NULL;
    if (forget_seen(seen, time, value, &entry) < 0) return -1;
    if (entry == NULL) return 0;
    if (change_coverages(many->distinct, entry, time, -1) < 0) return -1;
    if (entry->kind == EMPTY) drop_entry(seen, (uint32_t)(entry - seen->entries));
    return 0;
}

/* Removes the first `gone` elements of the first block, which no window reaches any more. */
static int distinct_cut(LongRun *many, uint32_t gone) {
    Distinct *distinct = many->distinct;
    Run *block = many->blocks[0];
    for (Py_ssize_t at = 0; at < distinct->count; at++) {
        Coverage *coverage = distinct->coverages + at;
        int64_t up_to = block->times[gone - 1] + coverage->over;
        if (up_to <= coverage->folded) continue;
        coverage->folded = up_to;
        coverage->base += long_drop(coverage->begins, BARE, up_to);
        coverage->base -= long_drop(coverage->ends, BARE, up_to);
    }
    for (uint32_t at = 0; at < gone; at++) {
        Entry *entry = NULL;
        if (forget_seen(distinct->seen, block->times[at], values_of(block)[at], &entry) < 0) return -1;
        if (entry != NULL && entry->kind == EMPTY)
            drop_entry(distinct->seen, (uint32_t)(entry - distinct->seen->entries));
    }
    return 0;
}

static void free_distinct(Distinct *distinct) {
    if (distinct == NULL) return;
    for (Py_ssize_t at = 0; at < distinct->count; at++) {
        if (distinct->coverages[at].begins != NULL) long_free(distinct->coverages[at].begins, BARE);
        if (distinct->coverages[at].ends != NULL) long_free(distinct->coverages[at].ends, BARE);
    }
    Py_XDECREF(distinct->seen);
    PyMem_Free(distinct);
}

static void free_many(LongRun *many, int valued) {
    free_distinct(many->distinct);
    long_free(many, block_layout(valued));
}

static Coverage *coverage_of(LongRun *many, int64_t over) {
    for (Py_ssize_t at = 0; many->distinct != NULL && at < many->distinct->count; at++)
        if (many->distinct->coverages[at].over == over) return many->distinct->coverages + at;
    return NULL;
}

/* Adds a coverage for windows of another length, and counts all elements again. */
static int make_distinct(Groups *self, LongRun *many, int64_t over) {
    if (coverage_of(many, over) != NULL) return 0;
    Distinct *before = many->distinct;
    Py_ssize_t count = before == NULL ? 1 : before->count + 1;
    Distinct *distinct = PyMem_Calloc(1, sizeof(Distinct) + count * sizeof(Coverage));
    if (distinct == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    distinct->count = count;
    /* Its elements never expire by themselves: its clock stands still. */
    PyObject *clock = PyObject_CallNoArgs((PyObject *)&ClockType);
    if (clock != NULL)
        distinct->seen = (Groups *)PyObject_CallFunction(
            (PyObject *)&GroupsType, "OLO()n", clock, 1LL << 60, Py_False, self->few);
    Py_XDECREF(clock);
    if (distinct->seen == NULL) goto failed;
    for (Py_ssize_t at = 0; at < count; at++) {
        Coverage *coverage = distinct->coverages + at;
        coverage->over = at == count - 1 ? over : before->coverages[at].over;
        coverage->folded = INT64_MIN;
        if ((coverage->begins = long_new((uint32_t)self->few)) == NULL) goto failed;
        if ((coverage->ends = long_new((uint32_t)self->few)) == NULL) goto failed;
    }
    many->distinct = distinct;
    for (uint32_t block = 0; block < many->count; block++) {
        Run *run = many->blocks[block];
        for (uint32_t at = 0; at < run->length; at++) {
            PyObject *value = values_of(run)[at];
            if (distinct_put(many, run->times[at], &value) < 0) {
                many->distinct = before;
                goto failed;
            }
            Py_SETREF(values_of(run)[at], Py_NewRef(value));
        }
    }
    free_distinct(before);
    return 0;
failed:
    free_distinct(distinct);
    return -1;
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
    if (count != 3) return PyErr_Format(PyExc_TypeError, "take takes 3 arguments");
    if (parsed_time(args[0], &time) < 0) return NULL;
    Entry *entry = find(self, args[1]);
    if (entry == NULL && PyErr_Occurred()) return NULL;
    if (entry != NULL && take_entry(self, entry, time, args[2]) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- elements on their way ----

   Groups that are put into one after the other lie all over the memory, which takes longer to come than
   all else. Of elements that wait together, all hash slots are asked for at once, then all entries, then
   what these point to. */

#define WAITING 64

typedef struct {
    Groups *groups;
    PyObject *group, *value;
    int64_t time;
    uint32_t hash;
} Element;

typedef struct {
    PyObject_HEAD
    uint32_t count;
    Element elements[WAITING];
} Queue;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Queue *queue;
    Groups *groups;
} QueuedPut;

static inline Entry *likely_entry(Groups *groups, uint32_t hash) {
    uint32_t index = groups->slots[hash & groups->mask];
    return index ? groups->entries + index - 1 : NULL;
}

static void load_entries(const Element *elements, uint32_t count) {
    for (uint32_t at = 0; at < count; at++) {
        Entry *entry = likely_entry(elements[at].groups, elements[at].hash);
        if (entry != NULL) __builtin_prefetch(entry, 1);
    }
    for (uint32_t at = 0; at < count; at++) {
        Entry *entry = likely_entry(elements[at].groups, elements[at].hash);
        if (entry == NULL || entry->hash != elements[at].hash) continue;
        __builtin_prefetch(entry->key);
        if (entry->kind != EMPTY && entry->kind != ONE) __builtin_prefetch(entry->held.run, 1);
    }
}

static inline void drop_element(Element *element) {
    Py_DECREF(element->groups);
    Py_DECREF(element->group);
    Py_DECREF(element->value);
}

/* Puts all that wait; the rest is dropped when one can't be. */
static int put_waiting(Queue *self) {
    uint32_t count = self->count;
    int failed = 0;
    load_entries(self->elements, count);
    self->count = 0;
    for (uint32_t at = 0; at < count; at++) {
        Element *each = self->elements + at;
        if (!failed) failed = put_hashed(each->groups, each->time, each->group, each->hash, each->value);
        drop_element(each);
    }
    return failed;
}

static PyObject *queued_put_call(PyObject *callable, PyObject *const *args, size_t flags,
                                 PyObject *Py_UNUSED(names)) {
    QueuedPut *self = (QueuedPut *)callable;
    Queue *queue = self->queue;
    Element *next = queue->elements + queue->count;
    if (PyVectorcall_NARGS(flags) != 3) return PyErr_Format(PyExc_TypeError, "a put takes 3 arguments");
    if (parsed_time(args[0], &next->time) < 0 || short_hash(args[1], &next->hash) < 0) return NULL;
    next->groups = (Groups *)Py_NewRef(self->groups);
    next->group = Py_NewRef(args[1]);
    next->value = Py_NewRef(args[2]);
    __builtin_prefetch(self->groups->slots + (next->hash & self->groups->mask));
    if (++queue->count == WAITING && put_waiting(queue) < 0) return NULL;
    Py_RETURN_NONE;
}

static void queued_put_dealloc(PyObject *object) {
    Py_DECREF(((QueuedPut *)object)->queue);
    Py_DECREF(((QueuedPut *)object)->groups);
    Py_TYPE(object)->tp_free(object);
}

static PyTypeObject QueuedPutType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._groups.QueuedPut",
    .tp_basicsize = sizeof(QueuedPut),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(QueuedPut, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = queued_put_dealloc,
};

static PyTypeObject GroupsType;

static PyObject *put_into(Queue *self, PyObject *groups) {
    if (!Py_IS_TYPE(groups, &GroupsType)) return PyErr_Format(PyExc_TypeError, "groups must be in C");
    QueuedPut *made = PyObject_New(QueuedPut, &QueuedPutType);
    if (made == NULL) return NULL;
    made->call = queued_put_call;
    made->queue = (Queue *)Py_NewRef(self);
    made->groups = (Groups *)Py_NewRef(groups);
    return (PyObject *)made;
}

static PyObject *flush(Queue *self, PyObject *Py_UNUSED(none)) {
    if (put_waiting(self) < 0) return NULL;
    Py_RETURN_NONE;
}

static void queue_dealloc(PyObject *object) {
    Queue *self = (Queue *)object;
    for (uint32_t at = 0; at < self->count; at++) drop_element(self->elements + at);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef queue_methods[] = {
    {"put_into", (PyCFunction)put_into, METH_O, "The `Put` of groups, whose elements wait here."},
    {"flush", (PyCFunction)flush, METH_NOARGS, "Put all that wait."},
    {NULL},
};

static PyTypeObject QueueType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._groups.Queue",
    .tp_basicsize = sizeof(Queue),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = queue_dealloc,
    .tp_methods = queue_methods,
};

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

/* By a hash table; equal values are mostly one object, so that most comparisons are of pointers. */
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

static PyObject *recounted(Reader *self, PyObject **values, uint32_t count) {
    PyObject *list = PyList_New(count);
    if (list == NULL) return NULL;
    for (uint32_t at = 0; at < count; at++) PyList_SET_ITEM(list, at, Py_NewRef(values[at]));
    PyObject *found = PyObject_CallOneArg(self->recount, list);
    Py_DECREF(list);
    return found;
}

static int part_kind(int function) {
    if (function == SUM || function == AVG) return TOTAL;
    if (function == MIN) return LEAST;
    return function == MAX ? GREATEST : TRUTH;
}

/* The aggregate of `count` values by their part; NULL without an error when the part is not enough. */
static PyObject *value_of_part(Reader *self, int64_t part, Py_ssize_t count) {
    if (self->function == AVG) {
        /* Both are integers and exact as doubles, so that only the quotient is rounded. */
        if (llabs(part) >= (1LL << 53) || self->divisor * count >= (double)(1LL << 53)) return NULL;
        return PyFloat_FromDouble((double)part / (self->divisor * count));
    }
    if (self->function != ANY && self->function != ALL) return PyLong_FromLongLong(part);
    int64_t decides = self->function == ANY ? HAS_TRUE : HAS_FALSE;
    if (part & decides) return PyBool_FromLong(self->function == ANY);
    if (part & HAS_NONE) Py_RETURN_NONE;
    return PyBool_FromLong(self->function == ALL);
}

static PyObject *aggregate(Reader *self, PyObject **values, const uint32_t *hashes, uint32_t count) {
    int64_t part;
    if (self->function == COUNT) return PyLong_FromUnsignedLong(count);
    if (count == 0) return Py_NewRef(self->of_none);
    if (self->function == DISTINCT) {
        if (count == 1) return PyLong_FromLong(1);
        if (hashes != NULL && count < 512) return count_hashed(values, hashes, count);
    } else if (self->function != OTHER) {
        if (count == 1 && self->function >= MIN) return Py_NewRef(values[0]);
        if (part_of(part_kind(self->function), values, count, &part)) {
            PyObject *found = value_of_part(self, part, count);
            if (found != NULL || PyErr_Occurred()) return found;
        }
    }
    return recounted(self, values, count);
}

/* What a long run gives; NULL without an error when only one in Python can. */
static PyObject *aggregate_many(Reader *self, LongRun *many, int64_t at) {
    int64_t part = 0;
    if (self->function == COUNT)
        return PyLong_FromSsize_t(long_rank(many, at) - long_rank(many, at - self->over));
    if (self->function == DISTINCT) {
        if (make_distinct(self->groups, many, self->over) < 0) return NULL;
        Coverage *coverage = coverage_of(many, self->over);
        return PyLong_FromSsize_t(
            coverage->base + long_rank(coverage->begins, at) - long_rank(coverage->ends, at));
    }
    if (self->function == OTHER) return NULL;
    Py_ssize_t count = long_fold(many, part_kind(self->function), at - self->over, at, &part);
    if (count < 0) return NULL;
    return count ? value_of_part(self, part, count) : Py_NewRef(self->of_none);
}

static PyObject *reader_call(PyObject *callable, PyObject *const *args, size_t flags,
                             PyObject *Py_UNUSED(names)) {
    Reader *self = (Reader *)callable;
    Groups *groups = self->groups;
    int64_t at;
    if (PyVectorcall_NARGS(flags) != 2) return PyErr_Format(PyExc_TypeError, "a reader takes 2 arguments");
    if (parsed_time(args[1], &at) < 0) return NULL;
    Entry *entry = find(groups, args[0]);
    if (entry == NULL) return PyErr_Occurred() ? NULL : aggregate(self, NULL, NULL, 0);
    if (entry->kind == RUN && entry->held.run->length > groups->few && lengthen(groups, entry) < 0)
        return NULL;
    if (entry->kind == LONG) {
        PyObject *found = aggregate_many(self, entry->held.many, at);
        if (found != NULL || PyErr_Occurred() || make_odd(groups, entry) < 0) return found;
    }
    if (entry->kind == ODD)
        return PyObject_CallMethodObjArgs(entry->held.odd, name_read, self->window, args[1], NULL);
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
    else if (!strcmp(function, "min")) reader->function = MIN;
    else if (!strcmp(function, "max")) reader->function = MAX;
    else if (!strcmp(function, "any")) reader->function = ANY;
    else if (!strcmp(function, "all")) reader->function = ALL;
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

/* ---- dump and load ---- */

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

static int dump_run(Groups *self, Run *run, PyObject *times, PyObject *values) {
    for (uint32_t at = 0; self->valued && at < run->length; at++)
        if (PyList_Append(values, values_of(run)[at]) < 0) return -1;
    return append_times(times, run->times, run->length);
}

static int dump_entry(Groups *self, Entry *entry, PyObject *times, PyObject *values) {
    if (entry->kind == ONE) {
        if (append_times(times, &entry->held.one.time, 1) < 0) return -1;
        return self->valued ? PyList_Append(values, entry->held.one.value) : 0;
    }
    if (entry->kind == RUN) return dump_run(self, entry->held.run, times, values);
    if (entry->kind == LONG) {
        for (uint32_t block = 0; block < entry->held.many->count; block++)
            if (dump_run(self, entry->held.many->blocks[block], times, values) < 0) return -1;
        return 0;
    }
    if (entry->kind == EMPTY) return 0;
    PyObject *elements = PyObject_CallMethodNoArgs(entry->held.odd, name_elements);
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

/* Hashes the keys that come next, and asks for their slots. */
static int hash_next(Groups *self, PyObject *keys, Py_ssize_t from, uint32_t *hashes) {
    for (Py_ssize_t at = from; at < from + WAITING && at < PyList_GET_SIZE(keys); at++, hashes++) {
        if (short_hash(PyList_GET_ITEM(keys, at), hashes) < 0) return -1;
        __builtin_prefetch(self->slots + (*hashes & self->mask), 1);
    }
    return 0;
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
    uint32_t hashes[WAITING];
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(keys); index++) {
        PyObject *key = PyList_GET_ITEM(keys, index);
        Py_ssize_t end = at + PyLong_AsSsize_t(PyList_GET_ITEM(counts, index));
        if (index % WAITING == 0 && hash_next(self, keys, index, hashes) < 0) return -1;
        for (; at < end; at++) {
            int64_t time;
            PyObject *value = self->valued ? PyList_GET_ITEM(values, at) : Py_True;
            memcpy(&time, (char *)times->buf + at * sizeof(int64_t), sizeof(int64_t));
            if (put_hashed(self, time, key, hashes[index % WAITING], value) < 0) return -1;
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
        PyErr_SetString(PyExc_ValueError, "reach must be at least 128 µs, and groups are initialised once");
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
    Py_XDECREF(self->last);
    Py_XDECREF(self->clock);
    Py_XDECREF(self->lengths);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *get_keys(Groups *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLong(self->keys);
}

static PyMethodDef groups_methods[] = {
    {"put", (PyCFunction)(void (*)(void))put, METH_FASTCALL, "Add one element."},
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "Remove one element, if it is there."},
    {"reader", (PyCFunction)new_reader, METH_VARARGS, "The reader of a window."},
    {"pass_buckets", (PyCFunction)pass_buckets, METH_NOARGS, "Mark the groups that come up for expiry."},
    {"sweep", (PyCFunction)sweep, METH_NOARGS, "Remove expired elements of a few marked groups."},
    {"prepare", (PyCFunction)prepare, METH_NOARGS, "Index one large group for fast reads."},
    {"dump", (PyCFunction)(void (*)(void))dump, METH_FASTCALL, "Some of the groups, as columns."},
    {"load", (PyCFunction)load, METH_O, "Add what `dump` returned."},
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
        PyErr_SetString(PyExc_TypeError, "clock must be a Clock");
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
        PyErr_SetString(PyExc_TypeError, "lengths must be a tuple");
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
    /* Python's hashes of texts have a secret already. */
    Py_hash_t of_texts[] = {PyObject_Hash(name_put), PyObject_Hash(name_remove)};
    for (int at = 0; at < 2; at++) multipliers[at] = (uint64_t)of_texts[at] | 1;
    if (PyType_Ready(&ClockType) < 0 || PyType_Ready(&GroupsType) < 0 || PyType_Ready(&ReaderType) < 0
        || PyType_Ready(&QueuedPutType) < 0 || PyType_Ready(&QueueType) < 0)
        return NULL;
    PyObject *runs = PyImport_ImportModule("tollkeeper.engine.velocity.run");
    if (runs == NULL) return NULL;
    lengthened = PyObject_GetAttrString(runs, "lengthened");
    Py_DECREF(runs);
    PyObject *module = PyModule_Create(&definition);
    if (lengthened == NULL || module == NULL
        || PyModule_AddObjectRef(module, "Clock", (PyObject *)&ClockType) < 0
        || PyModule_AddObjectRef(module, "Groups", (PyObject *)&GroupsType) < 0
        || PyModule_AddObjectRef(module, "Queue", (PyObject *)&QueueType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
