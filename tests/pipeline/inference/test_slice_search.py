"""Where a change sits: slices against an enumeration by loops, permutations against all of them, planted effects."""

from itertools import combinations, permutations, product

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.ratios import QueryContributions
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.slice_search import SearchRule, changed_slices, search_slices
from rankledger.pipeline.inference.tables import SliceChange
from rankledger.pipeline.support.parallel import Workers

ONE = Workers(jobs=1)
RULE = SearchRule(0.05, 0, ONE)


def search(changes, columns, clusters=None, *, permutations=500, seed=0, workers=ONE, alpha=0.05, **options):
    clusters = None if clusters is None else np.array(clusters)
    settings = Settings(permutations, seed, workers)
    return search_slices(np.array(changes, float), columns, clusters, settings, alpha=alpha, **options)


def by_loops(columns, least):
    """The queries of each slice with enough of them in it and outside, by the name of the first of equal ones."""
    n_queries = len(next(iter(columns.values())))
    found = {}
    for size in (1, 2):
        for names in combinations(columns, size):
            values = [sorted({text for text in columns[name] if text is not None}) for name in names]
            for texts in product(*values):
                inside = frozenset(
                    query
                    for query in range(n_queries)
                    if all(columns[name][query] == text for name, text in zip(names, texts, strict=True))
                )
                if least <= len(inside) <= n_queries - least:
                    found.setdefault(inside, " & ".join(map("=".join, zip(names, texts, strict=True))))
    return found


def studentized(changes, inside, clusters):
    """The sum of a slice over its standard error by loops over clusters, each beside those of its size."""
    members = {}
    for query, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(query)
    total = variance = 0.0
    for own in members.values():
        alike = [query for queries in members.values() if len(queries) == len(own) for query in queries]
        mean = sum(changes[query] for query in alike) / len(alike)
        share = sum(query in inside for query in alike) / len(alike)
        apart = sum(((query in inside) - share) * (changes[query] - mean) for query in own)
        total, variance = total + apart, variance + apart**2
    return total / variance**0.5 if variance > 1e-12 else 0.0


def greatest_of_all_orders(changes, columns, orders, least, clusters=range(7)):
    """The names, and in a row for each order the statistics of all slices."""
    slices = by_loops(columns, least)
    ordered = ([changes[query] for query in order] for order in orders)
    return [*slices.values()], np.array([[studentized(own, inside, clusters) for inside in slices] for own in ordered])


SMALL = {"a": ["x", "x", "x", "x", "y", "y", "z"], "b": ["s", "t", "s", "t", "s", None, "t"]}


def test_every_order_of_seven_queries():
    """Of 5,040 orders the share in which the greatest statistic of all slices reaches the sample's; 20,000 drawn ones
    give it to 0.01.
    """
    changes = [0.9, 0.7, 0.2, 0.3, -0.4, 0.1, 0.0]
    names, statistics = greatest_of_all_orders(changes, SMALL, list(permutations(range(7))), 2)
    greatest = np.abs(statistics).max(axis=1)

    (found,) = search(changes, SMALL, permutations=20_000, alpha=0.99, _least=2).found[:1]

    assert found.name == names[int(np.abs(statistics[0]).argmax())]
    assert found.statistic == pytest.approx(statistics[0][np.abs(statistics[0]).argmax()])
    assert found.p_value == pytest.approx((greatest >= greatest[0] - 1e-9).mean(), abs=0.011)


def test_every_order_of_clusters():
    """Two clusters of two queries and three of one: 2 · 2² · 3! = 48 orders keep clusters together and sizes apart."""
    clusters = [0, 0, 1, 1, 2, 3, 4]
    changes = [0.9, 0.8, 0.1, 0.3, -0.4, 0.1, 0.0]
    pairs = [one + other for one, other in [([0, 1], [2, 3]), ([2, 3], [0, 1])]]
    flips = [[a, b, c, d] for a, b, c, d in permutations(range(4)) if {a, b} in ({0, 1}, {2, 3})]
    orders = [[*first, *rest] for first in flips for rest in permutations([4, 5, 6])]
    assert len(orders) == 48
    assert pairs[0] in flips
    assert pairs[1] in flips
    names, statistics = greatest_of_all_orders(changes, SMALL, orders, 2, clusters)
    identity = orders.index(list(range(7)))
    greatest = np.abs(statistics).max(axis=1)

    (found,) = search(changes, SMALL, clusters, permutations=20_000, alpha=0.99, _least=2).found[:1]

    assert abs(found.statistic) == pytest.approx(greatest[identity])
    assert (
        found.name.removeprefix("outside ")
        in np.array(names)[np.abs(statistics[identity]) >= greatest[identity] - 1e-9]
    )
    assert found.p_value == pytest.approx((greatest >= greatest[identity] - 1e-9).mean(), abs=0.011)


def test_a_slice_that_only_varies_more_is_found_as_seldom_as_others():
    """No slice differs in its mean, and one of five has three times the spread."""
    n_found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = {"family": rng.choice(list("abcde"), 300), "length": rng.choice(list("xyz"), 300)}
        changes = rng.normal(0, 0.1, 300) * np.where(columns["family"] == "a", 3, 1)
        n_found += bool(search(changes, {name: own.tolist() for name, own in columns.items()}, permutations=200).found)

    assert n_found <= 12


@pytest.mark.parametrize("seed", range(5))
def test_slices_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    draws = {name: rng.choice([None, *values], 60) for name, values in {"a": "xyz", "b": "st", "c": "klmno"}.items()}
    columns = {name: draw.tolist() for name, draw in draws.items()} | {"copy of a": draws["a"].tolist()}
    slices = by_loops(columns, 5)

    found = search(rng.normal(size=60), columns, alpha=0.999, _least=5)

    assert found.n_slices == len(slices)
    for each in found.found:
        own = each.queries if each.name in slices.values() else ~each.queries
        assert slices[frozenset(np.flatnonzero(own).tolist())] == each.name.removeprefix("outside ")


def halves(n_queries):
    return {
        "second": [f"{query % 2}" for query in range(n_queries)],
        "third": [f"{query % 3}" for query in range(n_queries)],
    }


def test_a_change_that_all_share_is_in_no_slice():
    noise = np.random.default_rng(0).normal(-0.05, 0.01, 300)

    assert search(noise, halves(300)).found == ()
    assert search([-0.05] * 300, halves(300)).found == ()


def test_what_overlaps_with_a_slice_is_not_found_again():
    """Queries of third=0 lost 0.5: half of them are of second=0, which is no slice beside it, nor are parts of it."""
    columns = halves(300)
    changes = np.random.default_rng(1).normal(0, 0.1, 300) - 0.5 * (np.array(columns["third"]) == "0")

    (found,) = search(changes, columns).found

    assert found.name == "third=0"
    assert found.statistic < 0
    assert found.p_value == 1 / 501
    assert np.flatnonzero(found.queries).tolist() == [*range(0, 300, 3)]


def test_two_slices_or_an_effect_of_both_columns_are_found():
    """third=0 lost 0.5 and second=1 won 0.2: the stronger one is first; or those of third=2 and second=1 lost 0.5."""
    columns = halves(300)
    third, second = np.array(columns["third"]), np.array(columns["second"])
    two = np.random.default_rng(2).normal(0, 0.1, 300) - 0.5 * (third == "0") + 0.2 * (second == "1")
    both = np.random.default_rng(3).normal(0, 0.1, 300) - 0.5 * ((third == "2") & (second == "1"))

    assert [found.name for found in search(two, columns).found] == ["third=0", "second=1"]
    assert [found.name for found in search(both, columns).found] == ["second=1 & third=2"]


@pytest.mark.parametrize("lost", ["0", "1"])
def test_of_a_slice_and_all_others_it_is_the_one_that_changed(lost):
    columns = {"second": halves(100)["second"]}
    changes = np.random.default_rng(4).normal(0, 0.1, 100) - 0.5 * (np.array(columns["second"]) == lost)

    assert [found.name for found in search(changes, columns).found] == [f"second={lost}"]


def test_beside_a_slice_that_was_found_a_few_queries_are_none():
    """third=0 lost 0.5; of the other 200 queries 5 won 0.3, and are of the value `y`, as all of third=0 are: beside the
    first slice these 5 are all that `y` has, too few to be one.
    """
    columns = {"third": halves(300)["third"]}
    lost = np.array(columns["third"]) == "0"
    few = np.isin(np.arange(300), [1, 61, 121, 181, 241])
    columns["odd"] = ["y" if own else "n" for own in lost | few]
    changes = np.random.default_rng(14).normal(0, 0.1, 300) - 0.5 * lost + 0.3 * few

    assert [found.name for found in search(changes, columns).found] == ["third=0"]


@pytest.mark.parametrize("seed", range(4))
def test_a_slice_is_found_at_its_own_level_and_above(seed):
    changes = np.random.default_rng([15, seed]).normal(0, 0.1, 300)
    (first, *_) = search(changes, halves(300), permutations=1_000, alpha=0.999).found

    (again, *_) = search(changes, halves(300), permutations=1_000, alpha=first.p_value).found

    assert (again.name, again.p_value) == (first.name, first.p_value)
    assert not search(changes, halves(300), permutations=1_000, alpha=first.p_value - 1e-6).found


@pytest.mark.parametrize("sign", [1, -1])
def test_where_the_others_changed_more_they_are_named(sign):
    """Of 60 queries the 30 of `us` stay as they were; the 15 of `de` lose, or win, 0.5: too few to be a slice, but
    among the queries outside `us`. Those outside have the statistic of `us` with the other sign.
    """
    column = {"market": ["us", "de", "us", "fr"] * 15}
    changes = sign * -0.5 * (np.array(column["market"]) == "de") + np.tile([0.001, -0.001], 30)

    found = search(changes, column)

    assert [(each.name, np.sign(each.statistic)) for each in found.found] == [("outside market=us", -sign)]
    assert np.flatnonzero(found.found[0].queries).tolist() == [*range(1, 60, 2)]
    assert (found.n_slices, found.too_small) == (1, ("market=de", "market=fr"))


def test_queries_without_a_change_are_in_no_complement():
    changes = np.array([0.0] * 30 + [-0.5] * 15 + [-0.6] * 15 + [np.nan] * 5)

    (found,) = search(changes, {"market": ["us"] * 30 + ["de"] * 15 + ["fr"] * 20}).found

    assert (found.name, np.flatnonzero(found.queries).tolist()) == ("outside market=us", [*range(30, 60)])


def test_a_column_of_many_numbers_is_cut_into_quartiles():
    """The numbers 0 to 99 three times each, in no order; the queries above 74 lost 0.5. Ten numbers are ten slices."""
    numbers = np.random.default_rng(5).permutation(np.repeat(np.arange(100), 3))
    changes = np.random.default_rng(6).normal(0, 0.1, 300) - 0.5 * (numbers > 74)

    found = search(changes, {"length": [*map(str, numbers)]})

    assert (found.n_slices, [each.name for each in found.found]) == (4, ["length=75…99"])
    assert search(changes, {"length": [f"{number % 10}" for number in range(300)]}).n_slices == 10


def test_a_column_of_many_texts_makes_a_slice_of_those_that_are_frequent():
    """Of 301 texts one belongs to 20 of 320 queries and makes a slice; a column without such a text is not named."""
    texts = [f"t{max(query, 19)}" for query in range(320)]
    changes = np.random.default_rng(7).normal(size=320)

    found = search(changes, {"text": texts, "id": [f"q{query}" for query in range(320)]})

    assert (found.n_slices, found.columns) == (1, ("text",))
    assert search(changes[:39], {"text": texts[:39]}).n_slices == 0  # 19 are outside


def test_undefined_queries_are_in_no_slice():
    """30 queries of which 11 are undefined make no slice of 20, whatever their text; gaps and NaN may be anywhere."""
    changes = np.random.default_rng(8).normal(size=100)
    changes[:11] = np.nan
    columns = {"part": ["a"] * 30 + [None] * 20 + ["b"] * 50}

    found = search(changes, columns, alpha=0.999)

    assert found.n_slices == 1
    assert [np.flatnonzero(each.queries).tolist() for each in found.found] == [[*range(50, 100)]]


def test_clusters_move_as_a_whole():
    won = [*[1.0] * 7, *[0.0] * 3, *[1.0] * 3, *[0.0] * 7]
    users = np.repeat(np.arange(20), 10)
    column = {"half": [f"{user // 10}" for user in users]}
    changes = np.array(won)[users]

    assert search(changes, column).found
    (found,) = search(changes, column, users, permutations=5_000, alpha=0.5).found
    assert found.p_value == pytest.approx(0.1789, abs=0.02)


@pytest.mark.parametrize("workers", [Workers(3), Workers(2, "processes")], ids=["threads", "processes"])
def test_workers_never_change_a_bit(workers):
    columns = halves(3_000)
    rng = np.random.default_rng(10)
    changes = rng.normal(0, 0.1, 3_000) - 0.01 * (np.array(columns["third"]) == "1")
    alone, together = (
        search(changes, columns, users, permutations=700, workers=by, alpha=0.999).found
        for users in [rng.integers(0, 900, 3_000)]
        for by in (ONE, workers)
    )

    assert [(found.name, found.statistic, found.p_value) for found in alone] == [
        (found.name, found.statistic, found.p_value) for found in together
    ]


def test_what_is_too_large_is_left_out_and_counted():
    columns = {name: [f"{(query // 2**place) % 2}" for query in range(400)] for place, name in enumerate("abcd")}

    found = search(np.random.default_rng(11).normal(size=400), columns, _cells=3 * 400 + 1)

    assert (found.n_slices, found.n_skipped) == (6, 7)


def test_false_findings_stay_below_the_level():
    n_found = 0
    for seed in range(200):
        rng = np.random.default_rng([12, seed])
        columns = {"a": rng.choice([*"uvwxy"], 100).tolist(), "b": rng.choice([*"st"], 100).tolist()}
        n_found += bool(search(-0.1 * rng.lognormal(0, 1, 100), columns, permutations=100, seed=seed).found)

    assert n_found / 200 <= 0.05 + 4 * (0.05 * 0.95 / 200) ** 0.5


NAMES = ("web", "new", "old")


def contributions(scores, measure="rr", defined=None):
    counted = np.ones(len(scores)) if defined is None else np.array(defined, float)
    return QueryContributions.of(Measure.parse(measure), np.array([scores]) * counted, counted)


def changed(after, measure="rr", groups=None):
    """The changed slices of 300 queries that scored 0.5 before, and what is said of the search."""
    sides = contributions(after, measure), contributions([0.5] * 300, measure)
    return changed_slices(NAMES, sides, INTERNET if groups is None else groups, RULE)


INTERNET = Groups(columns={"family": ["internet"] * 59 + ["files"] * 241})


def test_what_a_slice_accounts_for():
    """59 of 300 queries fell from 0.5 to 0.1, the others rose from 0.5 to 0.51: -23.6 of -21.19 in all, 111%."""
    noise = np.tile([0.001, -0.001], 150)
    noise[58] = 0
    after = np.array([0.1] * 59 + [0.51] * 241) + noise - np.append(np.zeros(299), noise[59:].sum())

    (line,), searched = changed(after)

    assert (line.dataset, line.model, line.baseline, line.measure) == (*NAMES, "rr")
    assert (line.n_queries, line.n_all, line.before, line.after) == (59, 300, 0.5, pytest.approx(0.1))
    assert line.share == pytest.approx(23.6 / 21.19, abs=1e-4)
    assert str(line) == "family=internet, 59 of 300 queries, 0.5000 → 0.1000, accounts for 111% of the drop"
    assert searched == "web: 2 slices by family were searched"


def test_of_an_error_less_is_better():
    (line,), _ = changed(np.array([1.0] * 59 + [0.5] * 241), "mae(average=query)")

    assert (line.change, line.statistic < 0, line.share) == (pytest.approx(-0.5), True, pytest.approx(1.0))
    assert str(line).endswith("0.5000 → 1.0000, accounts for 100% of the rise")


@pytest.mark.parametrize(("won", "all_after"), [(0.059, "0.5000"), (0.1, "0.5329")])
def test_no_share_is_named_of_nothing_or_of_what_went_the_other_way(won, all_after):
    (line,), _ = changed(np.array([0.5 - 0.241] * 59 + [0.5 + won] * 241))

    assert str(line).endswith(f"0.5000 → 0.2590, while all queries together went 0.5000 → {all_after}")


def test_no_share_is_below_zero():
    """Of -0.0 the share is 0%: a slice that did not change, in which others lost 0.5 for all."""
    line = SliceChange("web", "new", "old", "rr", "a=b", 30, 60, 0.5, 0.5, 0.0, -0.0, 0.5, 0.25, 4.0, 0.001)

    assert str(line).endswith("accounts for 0% of the drop")


def test_slices_that_were_not_searched_are_named():
    market = ["us"] * 30 + ["de"] * 15 + ["fr"] * 15
    ids, pairs = [f"q{query}" for query in range(60)], [f"p{query // 2}" for query in range(60)]
    many = ["us"] * 30 + [f"m{query // 5}" for query in range(30)]
    sides = contributions([0.5] * 30 + [0.1] * 15 + [0.5] * 15), contributions([0.5] * 60)

    (line,), searched = changed_slices(
        ("web", "new", "old"), sides, Groups(columns={"market": market, "id": ids, "pair": pairs}), RULE
    )
    _, of_many = changed_slices(("web", "new", "old"), sides, Groups(columns={"many": many}), RULE)

    assert str(line) == "outside market=us, 30 of 60 queries, 0.5000 → 0.3000, accounts for 100% of the drop"
    assert line.p_value == line.p_least == 1 / 1_001  # no permutation reaches it
    small = "not searched, fewer than 20 queries in or outside"
    assert searched == f"web: 1 slice by market was searched; {small}: market=de, market=fr, every value of pair"
    assert of_many.endswith(f"{small}: many=m0, many=m1, many=m2, many=m3, many=m4 and 1 more")


@pytest.mark.parametrize(
    ("measure", "groups", "said"),
    [
        ("gmap", INTERNET, "web: no slices were searched, for gmap is no mean over queries"),
        ("rr", Groups(), ""),
        ("rr", Groups(columns={"text": [f"t{query}" for query in range(300)]}), "web: no slices were searched: no val"),
        ("rr", INTERNET, "web: in none of 2 slices by family does the change of rr of new differ from the rest"),
    ],
)
def test_what_is_said_where_nothing_is_found(measure, groups, said):
    lines, searched = changed(0.5 + np.random.default_rng(13).normal(0, 0.1, 300), measure, groups)

    assert lines == ()
    assert searched.startswith(said)
    assert bool(searched) == bool(said)
