"""Cycles in a graph: the components that may hold one, and one that meets all needs.

An edge is what happens on it, and the node that it leads to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

__all__ = ["Edges", "Need", "components", "cycle_through"]

T = TypeVar("T")

Edges: TypeAlias = Sequence[Sequence[tuple[T, int]]]


class Need(NamedTuple, Generic[T]):
    """What a cycle has to come by: one of these edges, or one of these nodes."""

    edges: Collection[T] = ()
    nodes: Collection[int] = ()

    def met(self, edge: T | None, node: int) -> bool:
        """Return whether an edge or a node meets the need."""
        return edge in self.edges or node in self.nodes


def components(edges: Edges[T], among: Sequence[bool]) -> Iterator[set[int]]:
    """The strongly connected components of some of the nodes (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in range(len(edges)):
        if not among[root] or root in index:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            out = edges[node]
            while at < len(out):
                there = out[at][1]
                at += 1
                if not among[there]:
                    continue
                if there not in index:
                    work += [(node, at), (there, 0)]
                    break
                if there in on_stack:
                    low[node] = min(low[node], index[there])
            else:
                if low[node] == index[node]:
                    at = stack.index(node)
                    component = set(stack[at:])
                    del stack[at:]
                    on_stack -= component
                    yield component
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])


def cycle_through(
    edges: Edges[T], component: Collection[int], entry: int, needs: Sequence[Need[T]]
) -> list[T]:
    """A way from a node back to it that meets all needs, the nearest of them next."""
    cycle: list[T] = []
    node = entry
    left = [need for need in needs if not need.met(None, node)]
    while left:
        way = _nearest(edges, component, node, left)
        for edge, node in way:
            cycle.append(edge)
            left = [need for need in left if not need.met(edge, node)]
    if node != entry or not cycle:
        cycle += [edge for edge, _ in _nearest(edges, component, node, [Need(nodes=(entry,))])]
    return cycle


def _nearest(
    edges: Edges[T], component: Collection[int], start: int, needs: Sequence[Need[T]]
) -> list[tuple[T, int]]:
    """The shortest way from a node to where one of the needs is met."""
    before: dict[int, tuple[int, T]] = {}
    todo = deque([start])
    while todo:
        node = todo.popleft()
        for edge, there in edges[node]:
            if there not in component:
                continue
            if any(need.met(edge, there) for need in needs):
                way = [(edge, there)]
                while node != start:
                    node, way = before[node][0], [(before[node][1], node), *way]
                return way
            if there not in before and there != start:
                before[there] = (node, edge)
                todo.append(there)
    raise ValueError("no way: this is no component, or it cannot meet the needs")
