/* The headers of a set that tell of its client (client.py). */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static inline Py_UCS1
low(Py_UCS1 letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter;
}

/* Whether a name is `wanted`, which is in lower case, as HTTP compares them. */
static int
is_named(PyObject *name, PyObject *wanted)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(wanted);
    if (PyUnicode_GET_LENGTH(name) != length || !PyUnicode_IS_COMPACT_ASCII(name)) {
        return 0;
    }
    const Py_UCS1 *sent = PyUnicode_1BYTE_DATA(name), *known = PyUnicode_1BYTE_DATA(wanted);
    while (length && low(sent[length - 1]) == known[length - 1]) {
        length--;
    }
    return length == 0;
}

static int
cut_values(PyObject *values, Py_ssize_t longest)
{
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(values); at++) {
        PyObject *value = PyTuple_GET_ITEM(values, at);
        if (value != Py_None && PyUnicode_GET_LENGTH(value) > longest) {
            PyObject *cut = PyUnicode_Substring(value, 0, longest);
            if (cut == NULL) {
                return -1;
            }
            PyTuple_SET_ITEM(values, at, cut);
            Py_DECREF(value);
        }
    }
    return 0;
}

static PyObject *
values_of(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    PyObject *name, *value;
    if (given != 3 || !PyDict_Check(args[0]) || !PyTuple_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "values_of takes headers, names and a length");
    }
    PyObject *headers = args[0], *names = args[1];
    Py_ssize_t next = 0, length = 0, count = PyTuple_GET_SIZE(names), longest = PyLong_AsSsize_t(args[2]);
    if (longest == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *values = PyTuple_New(count);
    if (values == NULL) {
        return NULL;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        PyTuple_SET_ITEM(values, at, Py_NewRef(Py_None));
    }
    while (PyDict_Next(headers, &next, &name, &value)) {
        for (Py_ssize_t at = 0; at < count; at++) {
            if (!is_named(name, PyTuple_GET_ITEM(names, at))) {
                continue;
            }
            PyObject *before = PyTuple_GET_ITEM(values, at);
            /* One name in two spellings: the greater value counts, whatever their order. */
            if (before == Py_None || PyUnicode_Compare(value, before) > 0) {
                PyTuple_SET_ITEM(values, at, Py_NewRef(value));
                Py_DECREF(before);
            }
            break;
        }
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        value = PyTuple_GET_ITEM(values, at);
        length += value == Py_None ? 0 : PyUnicode_GET_LENGTH(value);
    }
    if (length > longest && cut_values(values, longest) < 0) {
        Py_CLEAR(values);
    }
    return values;
}

static PyMethodDef methods[] = {
    {"values_of", (PyCFunction)(void (*)(void))values_of, METH_FASTCALL,
     "The values of the headers with these names."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_headers", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__headers(void)
{
    return PyModule_Create(&module);
}
