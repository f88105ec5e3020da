/* Instants to microseconds and back (instants.py): by counting days, without a timedelta between. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <datetime.h>

#define SECOND 1000000LL
#define DAY (86400 * SECOND)

/* Days from 1970-01-01 to a day of the Gregorian calendar, whose years begin in March here, so that a
   leap day is the last of its year. */
static long long
days_to(int year, int month, int day)
{
    year -= month <= 2;
    long long era = (year >= 0 ? year : year - 399) / 400;
    int of_era = (int)(year - era * 400);
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void
day_after(long long days, int *year, int *month, int *day)
{
    days += 719468;
    long long era = (days >= 0 ? days : days - 146096) / 146097;
    int rest = (int)(days - era * 146097);
    int of_era = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    int of_year = rest - (365 * of_era + of_era / 4 - of_era / 100);
    int march = (5 * of_year + 2) / 153;
    *day = of_year - (153 * march + 2) / 5 + 1;
    *month = march + (march < 10 ? 3 : -9);
    *year = (int)(of_era + era * 400) + (*month <= 2);
}

/* The microseconds that the clock of an instant's zone is ahead of UTC. */
static int
read_offset(PyObject *instant, long long *offset)
{
    PyObject *zone = PyDateTime_DATE_GET_TZINFO(instant);
    *offset = 0;
    if (zone == PyDateTime_TimeZone_UTC) {
        return 0;
    }
    PyObject *delta = PyObject_CallMethod(instant, "utcoffset", NULL);
    if (delta == NULL) {
        return -1;
    }
    if (!PyDelta_Check(delta)) {
        Py_DECREF(delta);
        PyErr_SetString(PyExc_TypeError, "an instant has an offset");
        return -1;
    }
    *offset = PyDateTime_DELTA_GET_DAYS(delta) * DAY + PyDateTime_DELTA_GET_SECONDS(delta) * SECOND
        + PyDateTime_DELTA_GET_MICROSECONDS(delta);
    Py_DECREF(delta);
    return 0;
}

static PyObject *
to_microseconds(PyObject *Py_UNUSED(module), PyObject *instant)
{
    long long offset;
    if (!PyDateTime_Check(instant)) {
        return PyErr_Format(PyExc_TypeError, "an instant is a datetime");
    }
    if (read_offset(instant, &offset) < 0) {
        return NULL;
    }
    long long days = days_to(PyDateTime_GET_YEAR(instant), PyDateTime_GET_MONTH(instant),
                             PyDateTime_GET_DAY(instant));
    int seconds = PyDateTime_DATE_GET_HOUR(instant) * 3600 + PyDateTime_DATE_GET_MINUTE(instant) * 60
        + PyDateTime_DATE_GET_SECOND(instant);
    return PyLong_FromLongLong(days * DAY + seconds * SECOND
                               + PyDateTime_DATE_GET_MICROSECOND(instant) - offset);
}

static PyObject *
from_microseconds(PyObject *Py_UNUSED(module), PyObject *microseconds)
{
    int year, month, day;
    long long time = PyLong_AsLongLong(microseconds);
    if (time == -1 && PyErr_Occurred()) {
        return NULL;
    }
    long long days = time / DAY - (time % DAY < 0), rest = time - days * DAY;
    if (days < days_to(1, 1, 1) || days > days_to(9999, 12, 31)) {
        return PyErr_Format(PyExc_OverflowError, "no date of the calendar");
    }
    day_after(days, &year, &month, &day);
    int seconds = (int)(rest / SECOND);
    return PyDateTimeAPI->DateTime_FromDateAndTime(
        year, month, day, seconds / 3600, seconds / 60 % 60, seconds % 60, (int)(rest % SECOND),
        PyDateTime_TimeZone_UTC, PyDateTimeAPI->DateTimeType);
}

static PyMethodDef methods[] = {
    {"to_microseconds", to_microseconds, METH_O,
     "Microseconds from 1970-01-01T00:00:00Z to an instant, which has an offset."},
    {"from_microseconds", from_microseconds, METH_O,
     "The instant so many microseconds after 1970-01-01T00:00:00Z, in UTC."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_instants", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__instants(void)
{
    PyDateTime_IMPORT;
    return PyDateTimeAPI == NULL ? NULL : PyModule_Create(&module);
}
