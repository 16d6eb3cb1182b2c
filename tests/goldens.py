"""The example tables of the papers, and what each class of theirs achieves."""

from __future__ import annotations

import math

from builders import leaf_tree, tree

# Machanavajjhala et al. (TKDD 2007): conditions of the classes of tables A and B.
A = ["hhvv", "vvch", "cccc"]
B = ["cchv", "vvch", "cchv"]
NAMES = {"h": "heart", "v": "viral", "c": "cancer"}
# (model, parameters) and what the three classes of A and of B achieve
HOSPITAL = [
    ("l-diversity", {"l": 2}, [2, 3, 1], [3, 3, 3]),
    ("p-sensitivity", {"p": 2}, [2, 3, 1], [3, 3, 3]),
    ("probabilistic-l-diversity", {"l": 2}, [2, 2, 1], [2, 2, 2]),
    ("entropy-l-diversity", {"l": 2}, [2, 2.828427, 1], [2.828427] * 3),
    ("recursive-l-diversity", {"c": 2.5, "l": 3}, [math.inf, 2, math.inf], [2, 2, 2]),
    ("recursive-l-diversity", {"c": 2.5, "l": 2}, [1, 1, math.inf], [1, 1, 1]),
    ("alpha-k-anonymity", {"alpha": 0.5}, [1 / 2, 1 / 2, 1], [1 / 2] * 3),
    ("t-closeness", {"t": 0.2}, [5 / 12, 1 / 6, 7 / 12], [1 / 12, 1 / 6, 1 / 12]),
    ("beta-likeness", {"beta": 1}, [1, 1 / 2, 7 / 5], [1 / 5, 1 / 2, 1 / 5]),
    (
        "delta-disclosure",
        {"delta": 0.6},
        [math.inf, 0.510826, math.inf],
        [0.287682, 0.510826, 0.287682],
    ),
]

# Entropies in nat, and exp(entropy) of all conditions: entropy 3-diversity is out of reach.
ENTROPIES = {"A": [0.693147, 1.039721, 0], "B": [1.039721] * 3}
WHOLE_ENTROPY = 2.9375
# (c, l) of table B: recursive diversity is strict
RECURSIVE = [(2, 3, False), (2.001, 3, True), (1, 2, False), (1.001, 2, True)]
# Counts 4, 3, 2, 1: the c that (c, l)-diversity must exceed, by l
VECTOR, INFIMA = "aaaabbbccd", {2: 2 / 3, 3: 4 / 3, 4: 4}

# Li et al. (ICDE 2007): salary in thousands and disease of rows 1 to 9.
SALARIES = [3, 4, 5, 6, 11, 8, 7, 9, 10]
DISEASES = [
    "gastric ulcer",
    "gastritis",
    "stomach cancer",
    "gastritis",
    "flu",
    "bronchitis",
    "bronchitis",
    "pneumonia",
    "stomach cancer",
]
DISEASE_TREE = tree(
    "diseases",
    {
        "respiratory": leaf_tree(
            infection=["flu", "pneumonia", "bronchitis"],
            vascular=["pulmonary edema", "pulmonary embolism"],
        ),
        "digestive": leaf_tree(
            stomach=["gastric ulcer", "stomach cancer", "gastritis"],
            colon=["colitis", "colon cancer"],
        ),
    },
)
PUBLISHED = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
ALTERNATIVE = [[1, 3, 8], [4, 5, 6], [2, 7, 9]]
# classes, then salary ordered, disease hierarchical and disease equal
CLOSENESS = [
    (PUBLISHED, [3 / 8, 1 / 6, 17 / 72], [4 / 9, 8 / 27, 8 / 27], [4 / 9] * 3),
    (ALTERNATIVE, [1 / 6, 1 / 6, 1 / 12], [7 / 27, 8 / 27, 5 / 27], [5 / 9, 4 / 9, 1 / 3]),
]

# 10,000 records of which 1 % are positive; (positive, negative) of three classes of four rows.
SKEWED = [(0, 4), (2, 2), (3, 1)]
SKEWED_ACHIEVED = [0.01, 0.49, 0.74]
SKEWED_DISTINCT = [1, 2, 2]

# Xiao and Tao (VLDB 2006): age, sex, zip code and disease; the bucket of each; a count of one
# disease among ages up to 30 and zip codes 10001 to 20000.
ANATOMY = [
    (23, "M", 11000, "pneumonia"),
    (27, "M", 13000, "dyspepsia"),
    (35, "M", 59000, "dyspepsia"),
    (59, "M", 12000, "pneumonia"),
    (61, "F", 54000, "flu"),
    (65, "F", 25000, "gastritis"),
    (65, "F", 25000, "flu"),
    (70, "F", 30000, "bronchitis"),
]
ANATOMY_BUCKETS = [1, 1, 1, 1, 2, 2, 2, 2]
ANATOMY_COUNT = (lambda row: row[0] <= 30 and 10001 <= row[2] <= 20000), "pneumonia"
