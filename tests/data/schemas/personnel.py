"""Employees, and where they worked, as what and for how much, from when to when."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from data.schemas import people

if TYPE_CHECKING:
    from random import Random

EMPLOYEES = 400
STILL = date(9999, 1, 1)
DDL = """
CREATE TABLE public.departments (dept_no text PRIMARY KEY, dept_name text NOT NULL UNIQUE);
CREATE TABLE public.employees (
    emp_no integer PRIMARY KEY, birth_date date NOT NULL, first_name text NOT NULL,
    last_name text NOT NULL, gender text NOT NULL, hire_date date NOT NULL);
CREATE TABLE public.dept_emp (
    emp_no integer REFERENCES public.employees, dept_no text REFERENCES public.departments,
    from_date date NOT NULL, to_date date NOT NULL, PRIMARY KEY (emp_no, dept_no));
CREATE TABLE public.titles (
    emp_no integer REFERENCES public.employees, title text, from_date date,
    to_date date NOT NULL, PRIMARY KEY (emp_no, title, from_date));
CREATE TABLE public.salaries (
    emp_no integer REFERENCES public.employees, salary integer NOT NULL, from_date date,
    to_date date NOT NULL, PRIMARY KEY (emp_no, from_date));
"""
# What a steward puts together to publish: a row for each employee and salary.
JOIN = """
SELECT s.emp_no, s.from_date, e.first_name, e.last_name, e.birth_date, e.gender, e.hire_date,
       d.dept_name, t.title, s.salary
  FROM salaries AS s
  JOIN employees AS e USING (emp_no)
  JOIN dept_emp AS w USING (emp_no)
  JOIN departments AS d USING (dept_no)
  JOIN titles AS t ON t.emp_no = s.emp_no AND t.from_date <= s.from_date
   AND s.from_date < t.to_date
"""
DEPARTMENTS = {"d1": "Development", "d2": "Finance", "d3": "Production", "d4": "Sales"}
TITLES = ("Assistant", "Associate", "Senior")


def tables(source: Random) -> dict[str, list[tuple]]:
    employees = [_employee(source, number) for number in range(10_001, 10_001 + EMPLOYEES)]
    titles, salaries = [], []
    for number, *_, hired in employees:
        years = source.randint(1, 8)
        titles += _titles(source, number, hired, years)
        salaries += _salaries(source, number, hired, years)
    return {
        "departments": list(DEPARTMENTS.items()),
        "employees": employees,
        "dept_emp": [(e[0], source.choice(sorted(DEPARTMENTS)), e[5], STILL) for e in employees],
        "titles": titles,
        "salaries": salaries,
    }


def _employee(source: Random, number: int) -> tuple:
    born = people.day(source, 1955, 1999)
    names = people.first_name(source), people.last_name(source)
    return number, born, *names, source.choice("FM"), people.day(source, 2012, 2020)


def _titles(source: Random, number: int, hired: date, years: int) -> list[tuple]:
    first = source.choice([0, 0, 1])
    promoted = hired + timedelta(365 * 4)
    if years <= 4 or source.random() < 0.5:
        return [(number, TITLES[first], hired, STILL)]
    return [
        (number, TITLES[first], hired, promoted),
        (number, TITLES[first + 1], promoted, STILL),
    ]


def _salaries(source: Random, number: int, hired: date, years: int) -> list[tuple]:
    """Return the pay of each year, a raise more than the year before, in steps of a scale."""
    pay = 36_000 + 2_000 * source.randrange(15)
    rows = []
    for year in range(years):
        since, until = (hired + timedelta(365 * y) for y in (year, year + 1))
        rows.append((number, pay, since, STILL if year == years - 1 else until))
        pay += 1_000 * source.randrange(4)
    return rows
