"""Results as Python prints them."""

from rankledger.pipeline.history.history import History, Night, Series


def test_a_history_prints_a_line_per_night():
    def night(date: str, estimate: float | None, gates: str, failure: str = "") -> Night:
        return Night(date, "id", estimate, None, None, None, 40, "", None, gates, None, failure=failure)

    nights = (night("2026-11-20", 0.5, "pass"), night("2026-11-21", None, ""), night("2026-11-22", None, "", "gone"))
    history = History("nightly", "ap", "higher", (Series("web", "bm25", nights, (), None, None),), ("a remark",))

    assert str(history).splitlines() == [
        "<History of ap in nightly: 1 series>",
        "bm25 on web:",
        "  2026-11-20 0.5000 pass",
        "  2026-11-21 undefined",
        "  2026-11-22 gone",
        "a remark",
    ]
    assert repr(history) == str(history)
