"""Scores of lists small enough to work by hand, with the arithmetic beside each; and what metrics refuse.

A list is written as the grades of its documents from rank 1 down, `-` for a document without judgment; after `|` stand
the grades of judged documents that were missed, after `of` the documents of the catalogue. `;` separates queries.
"""

import math
from functools import partial
from math import log2, pi, sqrt

import numpy as np
import pytest

from rankledger.metrics import agreement, gain, ranking, reading, sets
from rankledger.metrics.measure import Measure
from tests.support.blocks import PlainQuery, plain_block

NAN = math.nan
LOG3 = log2(3)
SIX = "1 - 0 2 -1 1 | 1 0 of 20"  # three relevant of six retrieved, R = 4; grade -1 counts as unjudged
FOUND_1_4_5 = "1 0 - 1 1 0 | 1"  # R = 4
TEN = "1 0 0 1 | 1 1 1 1 1 1 1 1"  # R = 10
AT_2 = (1 + 2 / LOG3) / (2 + 1 / LOG3)  # nDCG of grades 1 2 at rank 2

COUNTS = {  # (measure, list): scores
    **{(f"tp{at}", SIX): tp for at, tp in (("", 3), ("@1", 1), ("@4", 2), ("@6", 3), ("@100", 3), ("(rel=2)", 1))},
    **{(f"fp{at}", SIX): fp for at, fp in (("", 3), ("@1", 0), ("@4", 2), ("@6", 3), ("@100", 3), ("(rel=2)", 5))},
    **{(f"fn{at}", SIX): fn for at, fn in (("", 1), ("@1", 3), ("@4", 2), ("@6", 1), ("@100", 1), ("(rel=2)", 0))},
    # Those left: 20 - 4 - 2 = 14 at rank 4.
    **{(f"tn{at}", SIX): tn for at, tn in (("", 13), ("@1", 16), ("@4", 14), ("@6", 13), ("(rel=2)", 14))},
    ("tn", "1 ; 1 of 5"): [NAN, 4],  # no catalogue is known; 5 - 1 - 0
    ("fp", "- 1 - - - - - -"): 7,
    ("user_coverage", "- ;| 1 ; 1"): [1, 0, 1],  # whoever was given anything is covered
    ("num_ret", f"{SIX} ;| 1 0 ; - -"): [6, 0, 2],
    ("num_rel", f"{SIX} ;| 1 0 ; - -"): [4, 1, 0],
    ("num_nonrel_judged_ret", f"{SIX} ;| 1 0 ; - -"): [1, 0, 0],  # rank 3
    ("num_rel(rel=2)", SIX): 1,
    ("num_nonrel_judged_ret(rel=2)", SIX): 3,
    # Of 20 documents 3 are relevant and retrieved, 3 only retrieved, 1 only relevant, 13 neither.
    ("utility", SIX): 3 - 3,
    ("utility(a=3,b=-1,c=-2)", SIX): 9 - 3 - 2,
    ("utility(a=3,b=-1,c=-2,d=0.5)", SIX): 9 - 3 - 2 + 0.5 * 13,
    ("utility(a=1,b=0,rel=2)", SIX): 1,
    ("utility(a=2)", "1 0"): 1,  # whose catalogue is unknown, which matters only where d is not 0
    ("utility(a=2,d=1)", "1 0"): NAN,
    # Of ten documents two are relevant; three of the other eight were retrieved, two of them within two ranks.
    ("fallout", "0 - 1 0 | 1 of 10"): 3 / 8,
    ("fallout@2", "0 - 1 0 | 1 of 10"): 2 / 8,
    ("fallout", "1 of 1 ; 1"): [NAN, NAN],  # there is no other document; nobody says how many there are
}
SETS = {
    ("p", SIX): 3 / 6,
    ("p@4", SIX): 2 / 4,
    ("p@10", SIX): 3 / 10,
    **{(f"p(denominator=retrieved){at}", SIX): score for at, score in (("", 3 / 6), ("@10", 3 / 6), ("@4", 2 / 4))},
    **{(f"p{by}{at}", "| 1 ;"): [0, 0] for by in ("", "(denominator=retrieved)") for at in ("", "@5")},
    ("p", "- 1 - - - - - -"): 1 / 8,
    ("p@4", "- 1 - - - - - -"): 1 / 4,
    ("r", SIX): 3 / 4,
    ("r@2", SIX): 1 / 4,
    ("r@99", SIX): 3 / 4,
    # Over the two that fit into the first two, or all four.
    **{(f"r(denominator=cutoff){at}", SIX): score for at, score in (("", 3 / 4), ("@2", 1 / 2), ("@5", 2 / 4))},
    ("r", "0.5 1.5 | 1.0 0.25"): 1 / 2,
    ("r(rel=0.5)", "0.5 1.5 | 1.0 0.25"): 2 / 3,
    ("f1", SIX): 0.75 / 1.25,
    ("f1@4", SIX): 2 * 2 / (4 + 4),
    ("f1@10", SIX): 2 * 3 / (4 + 10),  # P 3/6, R 3/4
    ("f1", "0 - | 1"): 0,  # P = R = 0 has no harmonic mean by the formula
    ("f(beta=1)", SIX): 0.6,
    ("f(beta=2)", SIX): 5 * 0.375 / (4 * 0.5 + 0.75),
    ("f(beta=0.5)", SIX): 1.25 * 0.375 / (0.125 + 0.75),
    # Grade 1 or more is first at rank 1, 2 or more at rank 4, 3 nowhere.
    ("success@1", SIX): 1,
    ("success(rel=2)@3", SIX): 0,
    ("success(rel=2)@4", SIX): 1,
    ("success(rel=3)", SIX): NAN,
    **{(f"judged{at}", SIX): score for at, score in (("", 4 / 6), ("@1", 1), ("@2", 1 / 2), ("@5", 3 / 5))},
    ("judged@10", f"{SIX} ;| 1"): [4 / 6, NAN],  # of ten asked for six were retrieved
    **{(f"unjudged{at}", SIX): score for at, score in (("", 2 / 6), ("@1", 0), ("@2", 1 / 2), ("@5", 2 / 5))},
    ("unjudged@10", f"{SIX} ;| 1"): [2 / 10, 0],
    ("unjudged", "| 1"): 0,
    # Up to rank R = 4 the precision, below it the recall; six were retrieved, more than R.
    **{(f"relative_p{at}", SIX): score for at, score in (("", 3 / 4), ("@1", 1), ("@2", 1 / 2), ("@4", 2 / 4))},
    ("relative_p@5", SIX): 2 / 4,
    ("relative_p@10", SIX): 3 / 4,
    ("relative_p", "1 | 1 1 ;| 1"): [1, 0],  # as good as a list of one can be
    ("relative_p@2", "1 | 1 1 ;| 1"): [1 / 2, 0],
    ("set_map", f"{SIX} ; 0 - 1 -1 1 2 | 1 ;| 1"): [9 / 24, 9 / 24, 0],  # 3/6 times 3/4, whatever the order
    ("mar@4", "0 1 - | 1"): 3 / 8,  # recalls 0, 1/2, 1/2, 1/2
    ("mar(at=hits)@4", "0 1 - | 1"): 1 / 4,  # 1/2 at the hit alone, over 2
    ("mar(at=hits)@1", "0 1 - | 1"): 0,
}
RANKING = {
    ("rr", "0 - 1 2"): 1 / 3,
    ("rr@2", "0 - 1 2"): 0,
    ("rr@3", "0 - 1 2"): 1 / 3,
    ("rr(rel=2)", "0 - 1 2"): 1 / 4,
    ("rr(rel=2)@100", "0 - 1 2"): 1 / 4,
    ("rr(rel=0.5)", "-1 0.5 1.0"): 1 / 2,
    **{(f"{name}", "- - 1"): score for name, score in (("rr", 1 / 3), ("ap", 1 / 3), ("rprec", 0))},
    ("ap", "1 - 0 1 | 1"): (1 / 1 + 2 / 4) / 3,
    ("ap@3", FOUND_1_4_5): 1 / 4,
    ("ap(denominator=cutoff)@3", FOUND_1_4_5): 1 / 3,
    ("ap(denominator=hits)@3", FOUND_1_4_5): 1 / 1,
    **{(f"ap{at}", FOUND_1_4_5): (1 + 2 / 4 + 3 / 5) / 4 for at in ("@5", "(denominator=cutoff)@5", "@1000")},
    ("ap(denominator=cutoff)", FOUND_1_4_5): (1 + 2 / 4 + 3 / 5) / 4,
    ("ap(denominator=hits)@5", FOUND_1_4_5): (1 + 2 / 4 + 3 / 5) / 3,
    ("ap(denominator=hits)@2", "0 0 1"): 0,
    ("ap(rel=2)", "1 0 2"): 1 / 3,
    ("ap(rel=1)", "1 0 2"): (1 + 2 / 3) / 2,
    ("rprec", "1 0 2 1 ; 1 | 1 1 1"): [2 / 3, 1 / 4],  # however short the list
    ("rprec(rel=2)", "1 0 2 1"): 0,
    # The best 3 of 9 8 7 7 7 6 and what ties with them: five reach 7, two of them are found, over min(6, 3).
    ("rp@3", "7 - 7 | 9 8 7 6"): 2 / 3,
    ("rp@10", "0 4 0 | 5 ; 2 3 | 5"): [1 / 2, 2 / 3],  # a short solution: all of it counts; grade 0 is none of it
    ("rp(rel=3)@10", "2 3 | 5"): 1 / 2,
    # Of 3 2 1: at 1 the best is 3, not found; at 2 both are; at 5 two of three.
    ("avg_rp(cutoffs=[1,2,5])", "2 3 | 1"): (0 + 1 + 2 / 3) / 3,
    ("avg_rp(cutoffs=[5],rel=2)", "2 3 | 1"): 1,
    ("avg_rp", "- - - - - - 1"): (0 + 1) / 2,  # at 5 and at 10
    # Precisions 1, 2/4 and 3/5 at ranks 1, 4 and 5: recall 0.5 is best reached at rank 5, recall 1 never.
    **{
        (f"iprec(recall={recall},recall_points=ceil)", "1 0 0 1 1 | 1"): score
        for recall, score in ((0, 1), (0.25, 1), (0.5, 3 / 5), (0.75, 3 / 5), (1, 0))
    },
    # 1.05 documents reach recall 0.105: 2 by definition, int(1.95) = 1 by trec_eval 9, 1 when rounded.
    **{
        (f"iprec(recall=0.105,recall_points={rule})", TEN): score
        for rule, score in (("ceil", 2 / 4), ("truncate", 1), ("round", 1))
    },
    # 1.2 documents reach recall 0.12: 2 by definition, int(2.1) = 2 by trec_eval 9, 1 when rounded.
    **{
        (f"iprec(recall=0.12,recall_points={rule})", TEN): score
        for rule, score in (("ceil", 2 / 4), ("truncate", 2 / 4), ("round", 1))
    },
    # 0.55 · 100 is 55.00000000000001 in doubles, and 55 hits are enough.
    ("iprec(recall=0.55,recall_points=ceil)", f"{'1 ' * 55}|{' 1' * 45}"): 1,
    # Precision 1 up to recall 0.5 (six levels), 2/4 above (five); trec_eval 9 needs int(0.6 · 2 + 0.9) = 2 at 0.6 too.
    ("ap11(recall_points=ceil)", "1 0 0 1"): 8.5 / 11,
    ("ap11", "1 0 0 1 ; 0 1"): [8.5 / 11, 1 / 2],
    **{(name, "0 - ; 1 0"): [NAN, 1] for name in ("rr", "ap", "rprec", "avg_rp", "ap11", "bing", "bpref", "infap")},
    # R = 4: precision at int(2.9) = 2, int(4.9) = 4, int(6.5) = 6 of a list of 4, int(0.98) = 0 and int(1.7) = 1.
    **{
        (f"rprec_mult(factor={factor})", "1 0 2 1 | 1"): score
        for factor, score in ((0.5, 1 / 2), (1, 3 / 4), (1.4, 3 / 6), (0.02, 0), (0.2, 1))
    },
    ("bing", "0 1 - 1"): (1 / LOG3 + 1 / 2) / 2,  # one other document above the first, two above the second
    ("bing(rel=2)", "1 2 | 3"): 1 / LOG3 / 2,
    # Precisions 1 and 2/3 at two of three: (1 + 5/3) / (1 + 3 - 5/3); nothing found; nothing to find.
    ("yaap", "1 0 1 | 1 ; 0 | 1 1 1 ; 0"): [math.log((8 / 3) / (7 / 3)), -math.log(4), 0],
}
INCOMPLETE = {
    ("bpref", "1 - 0 1 0"): (1 + 1 / 2) / 2,  # R = 2, N = 2: none above rank 1, one of two above rank 4
    ("bpref", "0 0 0 1"): 0,  # three above count as min(3, 1) of min(3, 1)
    ("bpref", "0 1 1 | 1 0"): (1 / 2 + 1 / 2) / 3,  # N = 2 with one missed
    ("bpref", "-1 1 | -1 0"): 1,  # a negative grade is pooled but unjudged
    ("bpref", "- 1 1 | 1"): 2 / 3,  # nothing can stand above
    ("bpref(rel=2)", "1 2"): 0,
    ("bpref(rel=1)", "1 2"): 1,
    # Above rank 5 three of four are pooled, one of two judged relevant.
    ("infap", "1 - 0 -1 1 | 1"): (1 + 1 / 5 + 4 / 5 * 3 / 4 * (1 + 1e-5) / (2 + 2e-5)) / 3,
    ("infap", "-1 -2 1"): 1 / 3 + 2 / 3 * 1 * 1 / 2,  # pooled documents of unknown grade are relevant with chance 1/2
    ("infap", "- - 1"): 1 / 3,  # documents outside the pool are not relevant
    ("infap(rel=2)", "1 2"): 1 / 2 + 1 / 2 * 1 * 1e-5 / 1.00002,
}
GAIN = {
    ("ndcg", "- - 1"): (1 / log2(4)) / (1 / log2(2)),
    ("cg", "3 - 2 1"): 3 + 2 + 1,
    ("cg@2", "3 - 2 1"): 3,
    ("cg(gain=exponential)", "3 - 2 1"): 7 + 3 + 1,
    # At ranks 1, 3 and 7 log2(rank + 1) is 1, 2 and 3; max(1, log_b rank) starts at rank b.
    ("dcg", "3 - 2 - - - 1"): 3 / 1 + 2 / 2 + 1 / 3,
    ("dcg(gain=exponential)", "3 - 2 - - - 1"): 7 / 1 + 3 / 2 + 1 / 3,
    ("dcg(discount=jarvelin,base=2)", "3 - 2 - - - 1"): 3 + 2 / LOG3 + 1 / log2(7),
    ("dcg(discount=jarvelin,base=7)", "3 - 2 - - - 1"): 3 + 2 + 1 / 1,
    ("dcg(discount=jarvelin,base=10)", "3 - 2 - - - 1"): 3 + 2 + 1,
    (f"dcg(gain=exponential,discount=jarvelin,base={sqrt(7)})", "3 - 2 - - - 1"): 7 + 3 / (2 * math.log(3, 7)) + 1 / 2,
    ("dcg(discount=jarvelin,base=4)", f"1 - - 1 {'- ' * 11} 1"): 1 + 1 + 1 / 2,  # log_4 16 = 2
    ("ndcg", "1 | 3"): 1 / (3 + 1 / LOG3),  # the ideal list holds what was missed
    ("ndcg@1", "1 2 3"): 1 / 3,  # and is cut
    **{(f"ndcg@{k}", "1 - 2"): (1 + 2 / 2) / (2 + 1 / LOG3) for k in (3, 1000)},
    **{(f"cg(gain={form})", "-2 1 | -5"): 1 for form in ("linear", "exponential")},  # negative grades gain nothing
    **{(f"ndcg(gain={form})", "-2 1 | -5"): 1 / LOG3 for form in ("linear", "exponential")},
    ("cg", "0.5 1.5"): 0.5 + 1.5,
    ("cg(gain=exponential)", "0.5 1.5"): (sqrt(2) - 1) + (2 * sqrt(2) - 1),
    ("ndcg", "- 0.5"): 1 / LOG3,  # `rel` never touches gains
    **{(name, "0 -1 ; - ; 2 1"): [NAN, NAN, 1] for name in ("ndcg", "rndcg", "ndcg_rel", "g")},
    **{(f"{name}(gain=exponential)", "0 -1 ; - ; 2 1"): [NAN, NAN, 1] for name in ("rndcg", "ndcg_rel", "g")},
    # The ideal gain falls after ranks 1 and 2; with a fourth rank the whole list counts as a third point.
    ("rndcg", "1 2 - ; 1 2 - -"): [(1 / 2 + AT_2) / 2, (1 / 2 + 2 * AT_2) / 3],
    ("rndcg", "2 | 3 1"): (2 / 3 + 2 / (3 + 2 / LOG3) + 2 / (3 + 2 / LOG3 + 1 / 2)) / 3,  # beyond a short list
    ("rndcg(rel=2)", "1 2 ; 1"): [(1 / 2 + AT_2) / 2, NAN],
    # 1/2 at rank 1, `AT_2` at rank 2, and for the third that of the whole list.
    ("ndcg_rel", "1 2 | 1"): (1 / 2 + AT_2 + (1 + 2 / LOG3) / (2 + 1 / LOG3 + 1 / 2)) / 3,
    ("ndcg_rel", "0 | 2 ; 0 -1"): [0, NAN],
    ("g", "1 2"): (1 / log2(3) + 2 / log2(2)) / 3,  # ideal 2 1: short by 2 - 1 at rank 1 and 3 - 3 at rank 2
    ("g", "0 - 1"): 1 / log2(4) / 1,  # a rank costs 1 at least: short by 3 - 1
    **{
        (f"ndcg(gain={form})", f"{grade} 0 {grade}"): 1.5 / (1 + 1 / LOG3)  # the greatest grades allowed
        for form, grade in (("linear", 2.0**960), ("exponential", 960.0))
    },
}
CASCADE = {
    ("rbp(p=0.5)", "1 0 2"): 0.5 * (1 + 0.25),
    ("rbp", "- 1"): 0.2 * 0.8,
    ("rbp(p=0.5,gain=graded,max_grade=4)", "2 - 1 -1"): 0.5 * (2 / 4 + 1 / 4 * 0.25),
    ("rbp(p=0.5)@2", "1 0 2"): 0.5,
    ("rbp(p=0.5)@100", "1 0 2"): 0.625,
    ("rbp(p=0.5,rel=2)", "1 0 2"): 0.125,
    ("rbp(p=0.5)", "1 1 1 1 1 1 1 1 1 1"): 1 - 0.5**10,
    ("err(max_grade=2)", "2 1"): 3 / 4 + 1 / 2 * 1 / 4 * 1 / 4,
    ("err(grades=probability)", "0.5 - 1 ; -1 1"): [0.5 + 1 / 3 * 0.5 * 1, 1 / 2],  # unjudged, negative: satisfy nobody
    ("err(grades=probability,continuation=0.9)", "0.5 - 1"): 0.5 + 1 / 3 * 0.9**2 * 0.5,
    ("err(grades=probability)@2", "0.5 - 1"): 0.5,
    ("err(grades=probability)@50", "0.5 - 1"): 2 / 3,
    ("err(max_grade=4)", "2"): (2**2 - 1) / 2**4,
    ("err(grades=probability)", "- 1 ; - 1 1 0.5"): [0.5, 0.5],  # nobody reads past certain satisfaction
    ("err(max_grade=1)", "-1 1"): 1 / 4,
    **{(measure, "0 - | -1 ; -1 - | -1"): [0, 0] for measure in ("err(max_grade=1)", "rbp(gain=graded,max_grade=1)")},
    ("rankscore(half_life=1)", "1 0 1"): (1 + 1 / 4) / (1 + 1 / 2),
    ("rankscore", "- - - - - 1"): 2 ** (-5 / 5),
    ("rankscore(half_life=1)@2", "0 1 1 | 1"): (1 / 2) / (1 + 1 / 2),  # the best list is cut, too
    ("rankscore(half_life=1,rel=2)", "1 2"): 1 / 2,
    ("rankscore(rel=3)", "1 2"): NAN,
    ("rankscore(half_life=0.01)", "1 | 1 ; 0 1"): [1, 2.0**-100],
    # p = 0.5: ranks 2 and 4 weigh 1/4 and 1/16, all below the list 1/16; at 3, 1/4 and 1/8.
    **{
        (f"rbp_resid(p=0.5){at}", "1 - 0 -1"): score
        for at, score in (("", 0.375), ("@1", 0.5), ("@3", 0.25 + 0.125), ("@4", 0.375), ("@100", 0.375))
    },
    # Two judged documents leave p² below them by definition, and nothing to trec_eval 10.
    ("rbp_resid(p=0.5)", "1 0 ; 1 - ;| 1"): [0.25, 0.5, 1],
    ("rbp_resid(p=0.5,below=if_unjudged)", "1 0 ; 1 - ;| 1"): [0, 0.5, 0],
    ("rbp_resid(p=0.5,below=if_unjudged)@1", "1 0 ; 1 - ;| 1"): [0, 0, 0],
    ("nerr(max_grade=2)", "1 2"): (1 / 4 + 1 / 2 * 3 / 4 * 3 / 4) / (3 / 4 + 1 / 2 * 1 / 4 * 1 / 4),
    ("nerr(max_grade=2)@1", "1 0 | 2"): (1 / 4) / (3 / 4),
    ("nerr(grades=probability)@1", "0.5 | 1"): 0.5 / 1,
    ("nerr(grades=probability,continuation=0.9)", "0.5 1"): (0.5 + 0.9 / 2 * 0.5) / 1,
    ("nerr(max_grade=1)", "0 -1 ;| 1"): [NAN, 0],
}
READING = {  # gains of 1, 0 and 1/2, as the greatest grade is 2
    ("sdcg(max_grade=2)@3", "2 - 1"): (1 + 1 / 2 / 2) / (1 + 1 / LOG3 + 1 / 2),  # over perfect documents
    ("insq(max_grade=2)", "2 - 1"): (1 / 4 + 1 / 32) / (pi**2 / 6 - 1),  # ranks weigh 1/4, 1/9, 1/16 …
    ("insq(max_grade=2)@2", "2 - 1"): 1 / 4 / (1 / 4 + 1 / 9),
    ("insq(max_grade=1)@20000", "1"): 1 / 4 / ((np.arange(1.0, 20_001) + 1) ** -2).sum(),
    # With the 1 that is wanted at rank 1 the chances to read on are 1/4 and 4/9.
    ("inst(max_grade=2)@3", "2 - 1"): (1 + 1 / 18) / (1 + 1 / 4 + 1 / 9),
    # 1 is gained at rank 1; 1.5 at rank 3; 2 never, so that ten documents are read.
    ("bpm(max_grade=2)@10", "2 - 1"): 1,
    ("bpm(t=1.5,max_grade=2)@10", "2 - 1"): 1.5 / 3,
    ("bpm(t=2,max_grade=2)@10", "2 - 1"): 1.5 / 10,
    ("bpm(t=1.5,max_grade=2)@2", "2 - 1"): 1 / 2,
    # Half of the readers go on below a 1: chances 1, 1/2, 1/2 and 1/4, times 1 / i, or 1 / 2^(i - 1).
    ("nearly_err(max_grade=2)@4", "1 - 1"): (1 / 2 + 1 / 4) / (1 + 1 / 2 + 1 / 2 + 1 / 4),
    ("nearly_err(discount=reciprocal,max_grade=2)@4", "1 - 1"): (1 / 2 + 1 / 12) / (1 + 1 / 4 + 1 / 6 + 1 / 16),
    ("nearly_err(discount=geometric,p=0.5,max_grade=2)@4", "1 - 1"): (1 / 2 + 1 / 16) / (1 + 1 / 4 + 1 / 8 + 1 / 32),
    # Ranks weigh 1, 4/9 … as for insq; nobody goes on after a perfect document at rank 2.
    ("nearly_err(discount=inverse_square,max_grade=2)@1000", "0 2 2"): (4 / 9) / (1 + 4 / 9),
    ("nearly_err(discount=reciprocal,max_grade=2)@20000", "1"): 1 / 2 / (1 + (1 / np.arange(2.0, 20_001)).sum() / 2),
}
BLENDED = {  # ideal gains add up to 3 5 6: the ratios are (1 + 1) / (1 + 3), (2 + 4) / (2 + 5) and (3 + 6) / (3 + 6)
    ("o_measure", "1 3 2"): 1 / 2,
    ("p_measure", "1 3 2"): 6 / 7,
    ("p_plus", "1 3 2"): (1 / 2 + 6 / 7) / 2,
    ("ncu(stop=graded)", "1 3 2"): (1 / 2 + 3 * 6 / 7 + 2) / 6,
    ("ncu(gamma=0.5)", "1 3 2"): (1 / 2 + 6 / 7 / 2 + 1 / 4) / (1 + 1 / 2 + 1 / 4),
    # Within one rank the 1 is the best; of the three that gain readers stop at it alone.
    ("p_measure@1", "1 3 2"): 1 / 2,
    ("p_plus@1", "1 3 2"): 1 / 2,
    ("ncu(gamma=1)@1", "1 3 2"): 1 / 2 / 3,
    **{(name, "0 - | 2 ; 0 -1 ;"): [0, NAN, NAN] for name in ("o_measure", "p_measure", "p_plus", "ncu")},
    ("q_measure", "- 2 1 | 3 0"): ((1 + 2) / (2 + 5) + (2 + 3) / (3 + 6)) / 3,
    ("q_measure(beta=0)", "- 2 1 | 3 0"): (1 / 2 + 2 / 3) / 3,
    ("q_measure(beta=10)", "- 2 1 | 3 0"): (21 / 52 + 32 / 63) / 3,
    ("q_measure(gain=exponential)", "- 2 1 | 3"): ((1 + 3) / (2 + 10) + (2 + 4) / (3 + 11)) / 3,
    ("q_measure@2", "- 2 1 | 3"): 3 / 7 / 2,
    ("q_measure(denominator=relevant)@2", "- 2 1 | 3"): 3 / 7 / 3,
    ("q_measure@50", "- 2 1 | 3"): (3 / 7 + 5 / 9) / 3,
    ("q_measure", "- - - 2 ; 0.5 0 -1 ; 0 -1 ;| 1"): [(1 + 2) / (4 + 2), (1 + 0.5) / (1 + 0.5), NAN, 0],
}
ORDERS = {  # list: inversions, tau-b, AP correlation
    "3 2 1": (0, 1, 1),
    "1 2 3": (3, -1, -1),
    "0.5 1.5": (1, -1, -1),
    "1 - 2 -": (1, -1, -1),
    "0 -1 1": (1, -1, -1),
    "2 3 1": (1, (2 - 1) / 3, (-1 + 1) / 2),  # the second is out of order with the first, the third in order with both
    "3 1 2": (1, (2 - 1) / 3, (1 + 0) / 2),  # one pair as well, but below
    "2 1 1": (0, 2 / sqrt(3 * 2), (1 + 1 / 2) / 2),  # two pairs in order and one equal
    "1 2 1": (1, 0, (-1 + 1 / 2) / 2),
    "1 - 2 -1 0": (1, (2 - 1) / 3, (-1 + 1) / 2),
    "3 1 2 0": (1, (5 - 1) / 6, (1 + 0 + 1) / 3),
    "1 1 1": (0, NAN, NAN),
    "2 3 1 | 5": (1, (2 - 1) / 3, 0),  # what was missed has no rank
    **dict.fromkeys(("", "1", "- 2 -1", "| 1 2"), (NAN, NAN, NAN)),  # there is no pair
}
CORRELATION = {
    **{("kendall_distance", query): distance for query, (distance, _, _) in ORDERS.items()},
    **{("kendall_tau", query): tau for query, (_, tau, _) in ORDERS.items()},
    **{("ap_corr", query): correlation for query, (_, _, correlation) in ORDERS.items()},
    ("kendall_distance@2", "3 1 2 0"): 0,
    ("kendall_tau@2", "3 1 2 0"): 1,
    ("ap_corr@2", "3 1 2 0"): 1,
    ("kendall_tau@1000", "3 1 2 0"): 4 / 6,
    ("ap_corr@100", "3 1 2 0"): 2 / 3,
}
# p = 0.5 and the list 0 1 2: the 1 is second in both lists, the 2 third and first; depth d weighs 0.5^(d - 1) / d.
COMPATIBILITY = {
    ("compat(p=0.5)", "0 1 2"): (0.5 / 2 + 0.25 / 3 + 0.25 / 3) / (1 + 0.5 + 0.25 * 2 / 3),
    # Endlessly, depths from d on weigh 2 ln 2 less those above: (2 ln 2 - 1) + (2 ln 2 - 1.25), over 4 ln 2 - 1.
    **{(f"compat(p=0.5)@{k}", "0 1 2"): (4 * math.log(2) - 2.25) / (4 * math.log(2) - 1) for k in (1000, 10**15)},
    ("compat(p=0.5)@2", "0 1 2"): (0.5 / 2) / (1 + 0.5),
    ("compat", "2 2 1 1 0 ; 2 2 1 1"): [1, 1],  # any order of equal grades is ideal
    ("compat", "- 1 | 1"): 0.95 / 2 / (1 + 0.95),  # what was missed stands below what was not
    ("compat(p=0.5)", "0.5 0.2 ; 0.2 0.5"): [1, 0.5 / (1 + 0.5)],  # of two grades above 0 the greater is preferred
    ("compat", "0 -1 - ;;| 1"): [NAN, NAN, 0],
    ("compat(p=0.999999999)", "0 1 2"): (1 / 2 + 2 / 3) / (1 + 1 + 2 / 3),  # the depths beyond are not looked at
}
TABLES = [COUNTS, SETS, RANKING, INCOMPLETE, GAIN, CASCADE, READING, BLENDED, CORRELATION, COMPATIBILITY]


def read(text: str) -> PlainQuery:
    lists, _, size = text.partition("of")
    retrieved, _, missed = lists.partition("|")
    ranking = tuple(None if grade == "-" else float(grade) for grade in retrieved.split())
    return PlainQuery(ranking, tuple(map(float, missed.split())), int(size) if size else None)


def scores(text: str, lists: str) -> np.ndarray:
    measure = Measure.parse(text)
    return measure.metric.function(plain_block([*map(read, lists.split(";"))]), **measure.arguments(max_grade=None))


@pytest.mark.parametrize(
    ("text", "lists", "expected"), [(*case, expected) for table in TABLES for case, expected in table.items()]
)
def test_score(text, lists, expected):
    assert scores(text, lists).tolist() == pytest.approx(np.ravel(expected).tolist(), rel=1e-9, abs=1e-12, nan_ok=True)


REFUSED = [  # metric, parameter, values, what is said
    *(
        (metric, "p", (0, 1, -0.5, 2, NAN), "p must be between 0 and 1, found")
        for metric in (reading.rbp, reading.rbp_resid, agreement.compat, partial(reading.nearly_err, k=3, max_grade=2))
    ),
    (partial(reading.err, grades="probability"), "continuation", (0, -0.1, 1.1, NAN), "above 0 and at most 1, found"),
    (reading.rankscore, "half_life", (0, -5, NAN), "half_life must be above 0, found"),
    *((metric, "max_grade", (0, -1), "max_grade must be above 0, found") for metric in (reading.err,)),
    (partial(reading.rbp, gain="graded"), "max_grade", (0, -1), "max_grade must be above 0, found"),
    (sets.f, "beta", (0, -1, NAN), "beta must be above 0, found"),
    (ranking.rprec_mult, "factor", (0, -1, NAN), "factor must be above 0, found"),
    (ranking.iprec, "recall", (-0.1, 1.1, NAN), r"recall must be in \[0, 1\], found"),
    (ranking.avg_rp, "cutoffs", ([],), "cutoffs is empty; name at least one"),
    *(
        (partial(metric, discount="jarvelin"), "base", (1, 0.5, 0, -2, NAN), "base must be above 1, found")
        for metric in (gain.dcg, gain.ndcg)
    ),
    *((partial(metric, max_grade=2), "t", (0.5, 0.0, NAN), r"above 0\.5") for metric in (reading.insq, reading.inst)),
    (partial(reading.bpm, k=1, max_grade=2), "t", (0,), "t must be above 0, found 0"),
    (gain.ncu, "gamma", (0, -1, 1.5, NAN), "gamma must be above 0 and at most 1, found"),
    (gain.q_measure, "beta", (-0.5, NAN, 1e10), "beta must be at (least 0|most 1e9), found"),
]


@pytest.mark.parametrize(("metric", "name", "values", "message"), REFUSED)
def test_parameters_out_of_range_are_refused(metric, name, values, message):
    arguments = {"discount": "geometric"} if getattr(metric, "func", None) is reading.nearly_err else {}
    for value in values:
        with pytest.raises(ValueError, match=message):
            metric(plain_block([read("1")]), **arguments, **{name: value})


@pytest.mark.parametrize(
    ("text", "lists", "message"),
    [
        # Without it a score would depend on which queries share the block.
        *((text, "1", "max_grade is needed: the grade of a perfect document") for text in ("err", "rbp(gain=graded)")),
        *(
            (f"{text}max_grade=2)", query, "a judgment has grade 3, above max_grade 2; raise max_grade")
            for text in ("err(", "rbp(gain=graded,")
            for query in ("3", "1 | 3")
        ),
        ("err(grades=probability)", "2", "a judgment has grade 2"),
        # 2**2000 / 2**2000 is NaN in doubles, and would count as 0 in silence.
        ("err(max_grade=2000)", "2000 1", "2000"),
        *((f"{name}(gain=exponential)", "2000 1", "2000") for name in ("cg", "dcg", "ndcg")),
        # Two such gains add up to infinity.
        *(
            (f"{name}(gain={form})", f"{grade} 0 {grade}", f"grade {grade} is too large".replace("+", r"\+"))
            for name in ("cg", "dcg", "ndcg", "q_measure", "rndcg", "ndcg_rel", "g")
            for form, grade in (("linear", "1e+308"), ("exponential", "1023"))
        ),
    ],
)
def test_grades_out_of_range_are_refused(text, lists, message):
    with pytest.raises(ValueError, match=message):
        scores(text, lists)


@pytest.mark.parametrize(("form", "grade"), [("linear", 2.0**960), ("exponential", 960.0)])
def test_the_greatest_grades_have_finite_scores(form: str, grade: float):
    for name in ("cg", "dcg", "q_measure", "rndcg", "ndcg_rel", "g"):
        assert np.isfinite(scores(f"{name}(gain={form})", f"{grade} 0 {grade}")).all()
    assert np.isfinite(scores(f"q_measure(gain={form},beta=1e9)", f"{grade} 0 {grade}")).all()


@pytest.mark.parametrize(("beta", "limit"), [(1e-6, 0.5), (1e6, 0.75)])
def test_f_leans_to_recall_as_beta_grows(beta, limit):
    assert scores(f"f(beta={beta})", SIX) == pytest.approx([limit])


def test_the_factors_of_compatibility():
    terms = agreement.compat.terms(plain_block([read("0 1 2")]), p=0.5)

    assert terms.factors["rank in the ideal list"].ravel().tolist() == [np.inf, 2, 1]
    assert terms.factors["in both from depth"].ravel().tolist() == [np.inf, 2, 3]
    assert terms.terms.ravel() == pytest.approx([0, 1 / 4 + 1 / 12, 1 / 12])


@pytest.mark.parametrize(
    ("truth", "estimate", "published"),
    [
        (
            (0.67, 0.45, 0.29, 0.12, 0.57, 0.24, 0.94, 0.75, 0.08, 0.54),
            (0.48, 0.68, 0.32, 0.09, 0.06, 0.61, 0.87, 0.22, 0.44, 0.84),
            0.3928571,
        ),
        (
            (0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94),
            (0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94),
            0.7491182,
        ),
    ],
)
def test_ap_correlation_as_published(truth, estimate, published):
    ordered = [grade for _, grade in sorted(zip(estimate, truth, strict=True), reverse=True)]

    assert agreement.ap_corr(plain_block([PlainQuery(tuple(ordered))])) == pytest.approx([published], abs=5e-8)
