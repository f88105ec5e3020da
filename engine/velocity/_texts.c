/* `number_texts` and `texts_of` of texts.py in C: the same functions with the same results. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A borrowed reference to the value, or to its part; NULL when that is no text. */
static PyObject *text_of(PyObject *value, Py_ssize_t part) {
    if (part >= 0) {
        if (!PyTuple_CheckExact(value) || part >= PyTuple_GET_SIZE(value)) return NULL;
        value = PyTuple_GET_ITEM(value, part);
    }
    return PyUnicode_CheckExact(value) ? value : NULL;
}

/* The text's number; -1 with an error set. */
static long long number_of(PyObject *numbers, PyObject *added, PyObject *text) {
    PyObject *known = PyDict_GetItemWithError(numbers, text);
    if (known != NULL) return PyLong_AsLongLong(known);
    if (PyErr_Occurred()) return -1;
    Py_ssize_t next = PyDict_GET_SIZE(numbers);
    if (next > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too many texts");
        return -1;
    }
    PyObject *number = PyLong_FromSsize_t(next);
    if (number == NULL) return -1;
    int failed = PyDict_SetItem(numbers, text, number) < 0 || PyList_Append(added, text) < 0;
    Py_DECREF(number);
    return failed ? -1 : next;
}

static PyObject *number_texts(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *numbers, *added, *values;
    Py_ssize_t part;
    if (!PyArg_ParseTuple(arguments, "O!O!O!n", &PyDict_Type, &numbers, &PyList_Type, &added,
                          &PyList_Type, &values, &part)) {
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(values);
    for (Py_ssize_t index = 0; index < count; index++) {
        if (text_of(PyList_GET_ITEM(values, index), part) == NULL) Py_RETURN_NONE;
    }
    PyObject *packed = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint32_t));
    if (packed == NULL) return NULL;
    char *to = PyBytes_AS_STRING(packed);
    for (Py_ssize_t index = 0; index < count; index++, to += sizeof(uint32_t)) {
        long long number = number_of(numbers, added, text_of(PyList_GET_ITEM(values, index), part));
        if (number < 0) {
            Py_DECREF(packed);
            return NULL;
        }
        uint32_t small = (uint32_t)number;
        memcpy(to, &small, sizeof small);
    }
    return packed;
}

#define AHEAD 16 /* texts lie all over the memory, so they are asked for that many before they are used */

/* The text of the number at `index`; NULL when there is none. */
static PyObject *numbered(PyObject *texts, const char *packed, Py_ssize_t index) {
    uint32_t number;
    memcpy(&number, packed + index * (Py_ssize_t)sizeof number, sizeof number);
    return number < PyList_GET_SIZE(texts) ? PyList_GET_ITEM(texts, number) : NULL;
}

static PyObject *texts_of(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *packed, *texts;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyBytes_Type, &packed, &PyList_Type, &texts)) return NULL;
    Py_ssize_t count = PyBytes_GET_SIZE(packed) / (Py_ssize_t)sizeof(uint32_t);
    const char *from = PyBytes_AS_STRING(packed);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t index = 0; found != NULL && index < count; index++) {
        if (index + AHEAD < count) __builtin_prefetch(numbered(texts, from, index + AHEAD), 1);
        PyObject *text = numbered(texts, from, index);
        if (text == NULL) {
            Py_CLEAR(found);
            PyErr_SetString(PyExc_IndexError, "no text has this number");
        } else {
            PyList_SET_ITEM(found, index, Py_NewRef(text));
        }
    }
    return found;
}

static PyMethodDef methods[] = {
    {"number_texts", number_texts, METH_VARARGS,
     "The numbers of texts, packed; None where other values are among them."},
    {"texts_of", texts_of, METH_VARARGS, "The texts of packed numbers."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tollkeeper.engine.velocity._texts",
    .m_doc = "The numbers of an account's texts, in C.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__texts(void) { return PyModule_Create(&definition); }
