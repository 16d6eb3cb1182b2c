"""What published classes say of a population, by trying everything."""

from collections import Counter
from itertools import permutations


def covers(label, value, leaves):
    """Whether a value may be published under a label; leaves: of each label of a tree, or None."""
    if label is None or value is None:
        return label in {"*", "(,)"} or label is value
    if leaves is not None:
        return label == "*" or value in leaves[label]
    if label in {"*", "(,)"}:
        return True
    low, high = map(float, label[1:-1].split(","))
    return low <= value <= high


def region(labels, people, trees):
    """Return the places of the people that a class of these labels may stand for."""
    return {
        i
        for i, person in enumerate(people)
        if all(covers(*cell) for cell in zip(labels, person, trees, strict=True))
    }


def worlds(classes, n_people):
    """Yield every way to tell who the rows are: a person for each row, class by class.

    classes: (rows, region) of each.
    """
    slots = [i for i, (rows, _) in enumerate(classes) for _ in range(rows)]
    for people in permutations(range(n_people), len(slots)):
        if all(p in classes[i][1] for i, p in zip(slots, people, strict=True)):
            yield list(zip(slots, people, strict=True))


def candidates(classes, n_people):
    """Return for each class the fewest persons that one of its rows may be, None in no world."""
    found = {}
    for world in worlds(classes, n_people):
        for row, (of_class, person) in enumerate(world):
            found.setdefault((of_class, row), set()).add(person)
    return [
        min((len(people) for (c, _), people in found.items() if c == number), default=None)
        for number in range(len(classes))
    ]


def presence(classes, n_people):
    """Return in what share of the worlds each person is there, None without a world."""
    count, there = 0, Counter()
    for world in worlds(classes, n_people):
        count += 1
        there.update(person for _, person in world)
    return [there[person] / count for person in range(n_people)] if count else None
