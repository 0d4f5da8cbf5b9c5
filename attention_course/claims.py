"""Claims about transformers that experiments of this course put to the test.

An experiment ends with `report`: it says in words whether this run supports the claim, and leaves a
record in the notebook from which the course's ledger (`CLAIMS.md`) is made.
"""

from __future__ import annotations

from IPython.display import display

RECORD_TYPE = "application/vnd.attention-course.claim+json"

CLAIMS = {
    "C1": "dividing scores by the root of the width, and by nothing else, keeps their variance",
    "C2": "without positions attention cannot tell one order of its tokens from another",
    "C3": "a stack of attention alone makes all tokens alike; residual links keep them apart",
    "C4": "four times the width is a good size for the MLP",
    "C5": "one large projection that is cut into heads equals as many small ones",
    "C6": "the encoder runs once, and with a cache a step costs the same however long the text is",
    "C7": "attention costs the square of the length, recurrence grows with the length alone",
    "C8": "the MLP is one and the same for all positions",
    "C9": "if only [CLS] has a loss, every token's embedding learns all the same",
    "C10": "scores for start and end find more exact answers than a yes or no for each token",
    "C11": "a loss on all tokens instead of 15 % is what makes ELECTRA learn faster",
    "C12": "a generator of a quarter to half the discriminator's width is best",
    "C13": "words masked together are filled in as if they did not know of each other",
    "C14": "fresh masks in every epoch help, and guessing the next sentence does not",
    "C15": "a student keeps most of its teacher's score at a fraction of the size",
    "C16": "recurrence, recurrence with attention, attention alone, pre-training: each does better",
    "C17": "of the corruptions to learn from, filling in spans is the most useful",
    "C18": "three masks (encoder-decoder, causal, prefix) make three models, not equally good",
    "C19": "attention recalls over any distance what a recurrent state forgets",
}
VERDICTS = {
    True: "supported by this run",
    False: "NOT supported by this run",
    None: "not settled by this run",
}


def report(
    claim: str,
    supported: bool | None,
    effect: str,
    *,
    timed: bool = False,
    recorded_seconds: float | None = None,
) -> None:
    """Say whether a run supports a claim, and by how much.

    `supported` follows from the run's numbers; None if they are too close to tell. `effect` gives
    the numbers in words, with their spread over the seeds. `timed`: the verdict hangs on measured
    times, so that another machine may come to another one. `recorded_seconds`: what the runs behind
    it took, if they were recorded and are only read here. Raises ValueError for an unknown claim.
    """
    if claim not in CLAIMS:
        raise ValueError(f"there is no claim {claim!r}; known are {', '.join(CLAIMS)}")
    supported = None if supported is None else bool(supported)
    text = f"Claim {claim}: {CLAIMS[claim]}.\n{VERDICTS[supported]}: {effect}"
    record = {"claim": claim, "supported": supported, "effect": effect, "timed": timed}
    if recorded_seconds is not None:
        record["recorded_seconds"] = round(float(recorded_seconds))
    display({"text/plain": text, RECORD_TYPE: record}, raw=True)
