"""Diagrams as laboratories have them: texts of many programs, each with its edges or the remedy in the error."""

from pathlib import Path
from time import perf_counter

import networkx as nx
import pytest

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.scm import CausalDiagram

# x -> m -> y, with an unobserved common cause of x and y
FRONT_DOOR = CausalDiagram("xmy", [("x", "m"), ("m", "y")], [("x", "y")])
SAME = {
    "DAGitty": "dag { x -> m -> y x <-> y }",
    "DAGitty's own layout": (
        'dag {\nbb="0,0,1,1"\nx [exposure,pos="-2.2,0.1"]\nm [adjusted]\ny [outcome,pos="1,1"]\n'
        'u [latent,pos=".5,-1"]\nx -> m [beta=.3]\nm -> y\nu -> x\nu -> y\n}\n'
    ),
    "a byte order mark and comments": "\ufeff// from the paper\n  # second line\n/* of\nthree */ dag { x->m->y<->x }",
    "comments behind statements": "dag {\n  # causes\n x -> m // first\n m -> y # second\n x <-> y /* u */ }",
    "no frame": "x -> m\nm -> y\nx <-> y",
    "pdag without lines": "pdag { x -> m -> y; x <-> y }",
    "arrows backwards": "dag { y <- m <- x <-> y }",
    "long and printed arrows": "dag { x --> m ⟶ y; y ↔ x; x —> m }",
    "Windows": "dag {\r\n\tx -> m\r\n\tm -> y\r\n\tx <-> y\r\n}\r\n",
    "DAGitty 2": "x 1 @0.1,0.2\nm A @.5,.5\ny O @1,1\nu U @0.4,0.1\n\nx m\nm y\nu x @1.2,0.3 y\n",
    "DAGitty 2, arrows both ways": "x E\nm 1\ny O\n \nx m y\nm y\ny x",
    "DOT": "digraph { x -> m -> y; x -> y [dir=both]; }",
    "DOT of any case": 'STRICT DiGraph "G" { x -> m -> y x -> y [DIR="Both"; style=dashed] }',
    "arrowtail": (
        "digraph { x -> m [dir=both, arrowtail=none]; y -> m [dir=both arrowhead=none]; "
        "x -> y [dir=both, arrowtail=vee, arrowhead=normal] }"
    ),
    "arrowtail without dir": "digraph { x -> m [arrowtail=normal] m -> y [arrowhead=tee] y -> x [dir=both] }",
    "causal-learn": (
        "digraph {\nfontsize=18;\ndpi=200;\n0 [label=x];\n1 [label=m];\n2 [label=y];\n"
        "0 -> 1 [dir=both, arrowtail=none, arrowhead=normal];\n1 -> 2 [dir=both, arrowtail=none, arrowhead=normal];\n"
        "0 -> 2 [dir=both, arrowtail=normal, arrowhead=normal];\n}\n"
    ),
    "defaults end with their subgraph": (
        "digraph { subgraph cluster_a { edge [dir=both] node [observed=no, shape=box] u } x -> m -> y; u -> {x; y} }"
    ),
    "subgraphs as ends": 'digraph { subgraph a {u [observed="no"]} -> subgraph {x y}; {rank=same; x} -> m:n -> y:s:e }',
    "labels in HTML": "digraph { x [label=<<b>dose</b> &rarr;>] x -> m -> y y -> x [dir=both, label=<?>] }",
    "invisible edges": "digraph { graph [rankdir=LR] y -> x [style=invis] x -> m -> y; x -> y [style=bold dir=both] }",
    "edges more than once": "digraph { x -> m; x -> m; m -> y m -> y [color=red] x -> y [dir=both] y -> x [dir=both] }",
    "a graph with directions": "graph { edge [dir=forward] x -- m -- y; x -- y [dir=both] }",
}  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_a_string_is_read_as_its_program_means_it(kind: str) -> None:
    assert CausalDiagram.read(SAME[kind]) == FRONT_DOOR


NAMES = {
    "dag { node -> edge; node -> graph; strict -> digraph }": ["node", "edge", "graph", "strict", "digraph"],
    'digraph { node [shape=box] "node" -> "graph"; edge -> subgraph }': ["node", "graph", "edge", "subgraph"],
    'digraph { "a -> b" -> "say \\"no\\""; "{" -> "// x" }': ["a -> b", 'say "no"', "{", "// x"],
    "dag { 'pre-test' -> \"it's\" }": ["pre-test", "it's"],
    "dag { 2fa -> µ; Größe -> 日本語; x² -> e\u0301 }": ["2fa", "µ", "Größe", "日本語", "x²", "e\u0301"],
    "digraph { 0 -> 1; 1 -> -.5 }": ["0", "1", "-.5"],
    "digraph { 0 [label=a] 1 [label=a] 0 -> 1 }": ["0", "1"],
    "n1 [label=dose] n1 -> o\no -> p": ["n1", "o", "p"],
    "old name 1 @1,1\ny%20z O @2,2\n\nold name y%20z @1,1\n": ["old name", "y z"],
}


@pytest.mark.parametrize("string", NAMES)
def test_names_are_kept_and_travel_through_every_form(string: str) -> None:
    diagram = CausalDiagram.read(string)
    assert list(diagram.nodes) == NAMES[string]
    for back in (diagram.to_dagitty(), diagram.to_dot(), diagram.to_networkx()):
        assert CausalDiagram.read(back) == diagram


REFUSED = {
    "": "DAGitty code, dag { X -> Y }, or DOT code, digraph { X -> Y }; given ''",
    "dag { x -- y }": "line 1: the edge between x and y has no direction; write x -> y, y -> x or, .* x <-> y",
    "pdag {\nx -> m\nm -- y }": "line 3: the edge between m and y has no direction; .* candidates",
    "digraph { a -> b [dir=both, arrowhead=none, arrowtail=none] }": "the edge between a and b has no direction",
    "digraph { a -> b [dir=sideways] }": "line 1: dir=sideways is not a direction; write forward, back, both, none",
    "digraph { 0 [label=a] 1 [label=b] 0 -> 1 [dir=both, arrowtail=odot] }": "ends in a circle",
    "dag { x o-> y }": "the edge between x and y ends in a circle",
    "x <-o y": "the edge between x and y ends in a circle",
    "mag { x -> y }": r"mag { ... } shows ancestors .* write the causal diagram as dag { ... }",
    "dag { pre-test -> y }": "line 1: .* unexpected '-'; a name with other characters .* in quotation marks",
    "dag { x => y }": "line 1: .* unexpected '>'; arrows are written ->, <- and <->",
    "dag x -> y": "this looks like code without braces",
    "dag { a, b -> c }": "unexpected ',' .*; several variables are written in braces: { A B } -> C",
    "digraph {\nA ->\n}": "line 3: cannot read DOT: unexpected '}' where a name should come",
    "digraph {\nA -> B": "line 2: .* unexpected 'the end of the code' where a name should come",
    "digraph { A [label=<b] }": "line 1: a label in HTML has no end",
    "digraph { A }\n}": "line 2: cannot read DOT: unexpected '}' after the diagram",
    "dag { node [latent] node -> x }": 'line 1: DAGitty has no node .* a variable is written "node"',
    "digraph " + "{" * 9999: "braces are nested too deeply",
    "digraph { A -> B -> C -> A }": "acyclic; it holds the cycle A -> B -> C -> A",
    "dag { x -> y; y -> x }": "cycle x -> y -> x; an unobserved common cause is written x <-> y",
    "x 1\ny O\n\nx z": r"unknown variables \['z'\]; the first lines have \['x', 'y'\]",
    "model.gml": r"looks like the path of a file; give pathlib.Path\('model.gml'\), or its contents",
    "https://host/model.bif": "the path of a file; give its contents",
    "graph [\n node [\n id 0\n label \"x\" ]\n]": "cannot read GML: its edges have no directions; write 'directed 1'",
    "graph [\n directed 1 node [": "cannot read GML: expected",
    'graph [ directed 1 node [ id 0 label "x" ] node [ id 1 label "x" ] ]': r"several nodes have the labels \['x'\]",
    '<?xml version="1.0"?>\n<graphml xmlns="x"><graph/></graphml>': "looks like GraphML, .* networkx.parse_graphml",
    "network a {\n}\nvariable x { } probability ( x | y ) { }": "cannot read BIF: 'y' is not one of its variables",
    "flowchart LR\n x --> y": "looks like Mermaid",
    "Graph Nodes:\nx;y\n\nGraph Edges:\n1. x o-> y": "the edge between x and y ends in a circle",
    "Graph Nodes:\nx;y\n\nGraph Edges:\n1. x --> z": r"\['z'\] are not among its nodes",
    "Graph Nodes:\nx;y\n\nGraph Edges:\nx causes y": "'x causes y' is not an edge such as '1. X --> Y'",
    "y ~ x + z": "looks like formulas",
    '{"nodes": ["x"]}': r"looks like JSON, .* pairs \(cause, effect\)",
}  # fmt: skip


@pytest.mark.parametrize("string", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_remedy(string: str) -> None:
    with pytest.raises(ArgumentError, match=f"(?s){REFUSED[string]}"):
        CausalDiagram.read(string)


FILES = {
    "front.dot": "digraph { X -> Z -> Y; X -> Y [dir=both] }",
    "front.dag": "dag { X -> Z -> Y; X <-> Y }",
    "front.gml": """Creator "a program"
        graph [ directed 1 node [ id 0 label "X" ] node [ id 1 label "Z" ] node [ id 2 label "Y" ]
        node [ id 3 label "U" latent "yes" ] edge [ source 0 target 1 ] edge [ source 1 target 2 ]
        edge [ source 3 target 0 ] edge [ source 3 target 2 ] ]""",
    "front.txt": """Graph Nodes:\nX;Z;Y;(U)\n\nGraph Edges:\n1. X --> Z\n2. Z --> Y dd nl\n3. (U) --> X\n4. (U) --> Y
        \nGraph Attributes:\nBIC: -12.5\n""",
}


@pytest.mark.parametrize("name", FILES)
def test_files_and_their_contents_are_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(FILES[name], encoding="utf-8-sig")
    expected = CausalDiagram("XZY", [("X", "Z"), ("Z", "Y")], [("X", "Y")])
    assert CausalDiagram.read(file) == CausalDiagram.read(FILES[name]) == expected


def test_bayesian_networks_are_read_without_their_tables(tmp_path: Path) -> None:
    bif = """network "asia" { // a comment
    } variable smoke { type discrete [ 2 ] { yes, no }; } variable lung { type discrete [ 2 ] { yes, no }; }
    variable "air quality" { type discrete [ 2 ] { good, bad }; }
    probability ( smoke ) { table 0.5, 0.5; }
    /* probability ( smoke | lung ) */
    probability ( lung | smoke, "air quality" ) { (yes, good) 0.1, 0.9; (no, bad) 0.01, 0.99; }"""
    assert CausalDiagram.read(bif).directed == {("smoke", "lung"), ("air quality", "lung")}
    (tmp_path / "latin.dag").write_bytes("dag { é -> y }".encode("latin-1"))
    with pytest.raises(ArgumentError, match=r"latin\.dag: it is not text in UTF-8"):
        CausalDiagram.read(tmp_path / "latin.dag")
    with pytest.raises(ArgumentError, match=r"cannot read the diagram .*none\.gml: No such file"):
        CausalDiagram.read(tmp_path / "none.gml")


MANY = {letter: " ".join(f"{letter}{i}" for i in range(400)) for letter in "ab"}


@pytest.mark.parametrize(
    "string",
    [
        f"dag {{ {{{MANY['a']}}} -> {{ x y z {MANY['b'][:300]} }} }}",
        f"dag {{ {MANY['a'][:150].replace(' ', ' [l] ')} {{{MANY['a'][:150]}}} -> {{{MANY['b'][:500]}}} }}",
        f"dag {{ {MANY['a']} {MANY['b']} }}",
        "dag { x -> y }" + " " * 600_000,
        "digraph { {" + "a " * 3000 + "} -> {" + "b " * 300 + "} " + MANY["a"] + MANY["b"] + "}",
    ],
    ids=["edges", "edges of latent causes", "nodes", "characters", "names again and again"],
)
def test_a_string_that_is_too_large_is_refused_at_once(string: str) -> None:
    start = perf_counter()
    with pytest.raises(ArgumentError, match=r"at most .* read"):
        CausalDiagram.read(string)
    assert perf_counter() - start < 2


def test_a_graph_of_causal_learn_is_read_as_an_object_and_as_a_string() -> None:
    pytest.importorskip("causallearn")
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.utils.GraphUtils import GraphUtils

    x, m, y = nodes = [GraphNode(name) for name in "xmy"]
    graph = GeneralGraph(nodes)
    graph.add_directed_edge(x, m)
    graph.add_directed_edge(m, y)
    graph.add_edge(Edge(x, y, Endpoint.ARROW, Endpoint.ARROW))
    assert CausalDiagram.read(graph) == FRONT_DOOR
    assert CausalDiagram.read(GraphUtils.to_pydot(graph).to_string()) == FRONT_DOOR
    graph.remove_edge(graph.get_edge(x, m))
    graph.add_edge(Edge(x, m, Endpoint.TAIL, Endpoint.TAIL))
    with pytest.raises(ArgumentError, match="the edge between x and m has no direction"):
        CausalDiagram.read(graph)


def test_objects_of_every_kind_are_read() -> None:
    assert CausalDiagram.read(FRONT_DOOR) is FRONT_DOOR
    assert CausalDiagram.read(FRONT_DOOR.to_networkx()) == FRONT_DOOR
    assert CausalDiagram.read([("x", "m"), ["m", "y"]]) == CausalDiagram("xmy", FRONT_DOOR.directed)
    numbered = nx.MultiDiGraph([(0, 1), (1, 2)])
    numbered.add_edge(0, 2, dir="both", arrowhead="normal")
    nx.set_node_attributes(numbered, dict(enumerate("xmy")), "label")
    assert CausalDiagram.read(numbered) == FRONT_DOOR


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (nx.Graph([("x", "y")]), r"directed edges; given an undirected Graph; .* pairs \(cause, effect\)"),
        (nx.DiGraph([(("x", 0), ("y", 0))]), r"names of variables are strings; given .*networkx.relabel_nodes"),
        (nx.DiGraph([("x", "y"), ("y", "x")]), "cycle x -> y -> x"),
        ({"y": ["x"]}, "a mapping does not say which are the causes: give networkx.DiGraph"),
        (Path("model.dot"), "cannot read the diagram model.dot: No such file"),
        (["x -> y"], r"pairs of names, \(cause, effect\); given 'x -> y'"),
        ([("x", "y", 1)], "pairs of names"),
        (3, "a causal diagram is code of DAGitty, DOT, GML, BIF or Tetrad, .*; given 3"),
        (b"dag { x -> y }", "a causal diagram is code of DAGitty, DOT, GML"),
    ],
)  # fmt: skip
def test_objects_that_are_no_diagram_are_refused(source, message: str) -> None:
    with pytest.raises(CBOGymError, match=message):
        CausalDiagram.read(source)
