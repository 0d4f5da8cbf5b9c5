"""Pre-training in miniature: ELECTRA and its ablations on the French side of the fragment."""

from attention_course.data.electra_records import (
    read_detections,
    read_longer,
    read_masks,
    read_runs,
    read_ways,
)
from attention_course.electra.corpus import Corpus, make_corpus
from attention_course.electra.model import Encoder
from attention_course.electra.objectives import OBJECTIVES, Pretraining
from attention_course.electra.pair import Pair, corrupted, load_pair
from attention_course.electra.scoring import (
    acceptability,
    detection,
    mlm_suspicion,
    replaced_suspicion,
    tagging,
)
from attention_course.electra.training import pretrain

__all__ = [
    "OBJECTIVES",
    "Corpus",
    "Encoder",
    "Pair",
    "Pretraining",
    "acceptability",
    "corrupted",
    "detection",
    "load_pair",
    "make_corpus",
    "mlm_suspicion",
    "pretrain",
    "read_detections",
    "read_longer",
    "read_masks",
    "read_runs",
    "read_ways",
    "replaced_suspicion",
    "tagging",
]
