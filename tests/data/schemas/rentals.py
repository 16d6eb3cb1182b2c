"""A shop that rents films: who rented which copy, when, and what was paid for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from data.schemas import people

if TYPE_CHECKING:
    from random import Random

CUSTOMERS, RENTALS = 300, 1500
DDL = """
CREATE TABLE public.country (country_id integer PRIMARY KEY, country text NOT NULL);
CREATE TABLE public.city (
    city_id integer PRIMARY KEY, city text NOT NULL,
    country_id integer NOT NULL REFERENCES public.country);
CREATE TABLE public.address (
    address_id integer PRIMARY KEY, address text NOT NULL, district text,
    city_id integer NOT NULL REFERENCES public.city, postal_code text, phone text);
CREATE TABLE public.customer (
    customer_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL,
    email text, address_id integer NOT NULL REFERENCES public.address,
    active boolean NOT NULL, create_date date NOT NULL);
CREATE TABLE public.film (
    film_id integer PRIMARY KEY, title text NOT NULL, category text NOT NULL, rating text,
    rental_rate numeric(4, 2) NOT NULL, length integer);
CREATE TABLE public.inventory (
    inventory_id integer PRIMARY KEY, film_id integer NOT NULL REFERENCES public.film);
CREATE TABLE public.rental (
    rental_id integer PRIMARY KEY, rental_date timestamp NOT NULL,
    inventory_id integer NOT NULL REFERENCES public.inventory,
    customer_id integer NOT NULL REFERENCES public.customer, return_date timestamp);
CREATE TABLE public.payment (
    payment_id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES public.customer,
    rental_id integer NOT NULL REFERENCES public.rental, amount numeric(5, 2) NOT NULL);
"""
# What a steward puts together to publish: a row for each rental.
JOIN = """
SELECT r.rental_id, r.customer_id, u.first_name, u.last_name, u.email, a.district, a.postal_code,
       i.city, n.country, u.active, f.category, f.rating, p.amount
  FROM rental AS r
  JOIN customer AS u USING (customer_id)
  JOIN address AS a USING (address_id)
  JOIN city AS i USING (city_id)
  JOIN country AS n USING (country_id)
  JOIN inventory AS v USING (inventory_id)
  JOIN film AS f USING (film_id)
  JOIN payment AS p USING (rental_id)
"""
COUNTRIES = {"Norrland": 5, "Ostmark": 3, "Sudania": 4, "Westria": 2}
CATEGORIES = "action animation comedy documentary drama family horror music".split()  # noqa: SIM905


def tables(source: Random) -> dict[str, list[tuple]]:
    countries = list(enumerate(COUNTRIES, 1))
    cities = _cities(countries)
    addresses = [_address(source, number, cities) for number in range(1, CUSTOMERS + 1)]
    films = [_film(source, number) for number in range(1, 81)]
    copies = [(number, 1 + number % len(films)) for number in range(1, 241)]
    rentals = [_rental(source, number, copies) for number in range(1, RENTALS + 1)]
    rates = {film[0]: film[4] for film in films}
    payments = [
        (number, customer, number, rates[copies[copy - 1][1]] + source.choice([0, 0, 1, 2]))
        for number, _, copy, customer, _ in rentals
    ]
    return {
        "country": countries,
        "city": cities,
        "address": addresses,
        "customer": [_customer(source, number) for number in range(1, CUSTOMERS + 1)],
        "film": films,
        "inventory": copies,
        "rental": rentals,
        "payment": payments,
    }


def _cities(countries: list[tuple[int, str]]) -> list[tuple]:
    places = [(name, number, c) for number, name in countries for c in range(COUNTRIES[name])]
    return [
        (number, f"{name} Town {place + 1}", country)
        for number, (name, country, place) in enumerate(places, 1)
    ]


def _address(source: Random, number: int, cities: list[tuple]) -> tuple:
    city, name, _ = source.choice(cities)
    street = f"{source.randint(1, 999)} {people.last_name(source)} Road"
    district = f"{name} {source.choice(['North', 'South'])}"
    postal = f"{city:02}{source.randint(1, 30):03}"
    return number, street, district, city, postal, people.phone(source)


def _customer(source: Random, number: int) -> tuple:
    first, last = people.first_name(source), people.last_name(source)
    email = f"{first}.{last}{number}@example.org".lower()
    joined = people.day(source, 2022, 2022)
    return number, first, last, email, number, source.random() < 0.95, joined


def _film(source: Random, number: int) -> tuple:
    rating = source.choice(["G", "PG", "R"])
    rate = source.choice([0.99, 2.99, 4.99])
    return number, f"Film {number}", source.choice(CATEGORIES), rating, rate, 60 + number


def _rental(source: Random, number: int, copies: list[tuple]) -> tuple:
    rented = datetime.fromisoformat(f"{people.day(source, 2023, 2023)}T10:00:00")
    rented += timedelta(seconds=source.randrange(36_000))
    back = rented + timedelta(days=source.randint(1, 9)) if source.random() < 0.97 else None
    customer = 1 + int(CUSTOMERS * source.random() ** 1.5)  # some come often
    return number, rented, source.choice(copies)[0], customer, back
