"""The study of docs/study.md: what each protocol costs in systems of microservices.

    python -m campaigns.study              everything; hours on two cores
    python -m campaigns.study --quick      few and small runs, in about a minute
    python -m campaigns.study --help

The parts are the experiments in `experiments/study`, which run on Spark (`sweep`). A study
that was stopped continues where it was. At the end the page is written from the tables of
runs and from `experiments/study/page.md`, which has the text that is not made of numbers.
"""
