"""Looks into a search on Deep-sea: prints why it acts as it does and draws its graph.

python examples/search_graph.py [picture.png]      (a second or two)
"""

import sys

import numpy as np

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.inspect import root_report, search_graph
from bathysphere.planning.picture import draw_graph
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig


def main() -> None:
    """Plays eight steps of a dive and looks at the ninth."""
    domain = DeepSea(DeepSeaConfig(size=20))
    values = Ensemble(ValuesConfig("linear", bias=False), OptimiserConfig(), domain.observation, seed=0)
    search = MCTS(domain, values, SearchConfig(risk_coef=50.0, num_subsampled=10, avoid_loops=False), seed=1)
    for _ in range(8):
        search.step()
    graph = search_graph(search, slot=0)
    if graph.child[graph.root, 0] >= 0:  # the kept subtree already says something about the next step
        print(root_report(search, slot=0))
    print(f"{len(graph.states)} states in the graph, {int(graph.count.sum())} values in them")

    y, x = domain.cells(graph.states)
    title = "Deep-sea, N = 20, after 8 steps of 10 passes"
    figure = draw_graph(graph, positions=np.stack([x, y], axis=1), title=title)
    path = sys.argv[1] if len(sys.argv) > 1 else "search_graph.png"
    figure.savefig(path, dpi=110)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
