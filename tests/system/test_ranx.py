"""`Qrels` and `Run` of ranx itself as inputs: making the first of them compiles for some ten seconds."""

import pandas as pd

import rankledger
from tests.support.generated_data import rows, search_collection

WEB = search_collection(20, n_queries=30, models=("bm25",))


def test_what_ranx_holds_is_what_was_put_in():
    from ranx import Qrels, Run

    judged = {query: {doc: int(grade) for doc, grade in own.items()} for query, own in WEB.judged.items()}
    ranking = {query: {doc: float(score) for doc, score in own.items()} for query, own in WEB.outputs["bm25"].items()}
    frame = pd.DataFrame(rows(ranking), columns=["q_id", "doc_id", "score"]).astype({"q_id": object, "doc_id": object})
    options = {"measures": ["ndcg@10", "ap", "rr", "judged@10"], "settings": {"bootstrap": {"resamples": 200}}}

    expected = rankledger.evaluate(judged, {"bm25": ranking}, **options)
    found = rankledger.evaluate(Qrels(judged), {"bm25": Run.from_df(frame)}, **options)

    pd.testing.assert_frame_equal(found.scores, expected.scores, check_exact=True)
    pd.testing.assert_frame_equal(found.summary, expected.summary, check_exact=True)
