//! The picture as SVG: phases in layers, the way through them on the left, what they see on the right.
//!
//! Edges to the next layer go straight down. All others turn in the gap between layers, where no node is, and run in a
//! lane beside all nodes: to the left where they lead on, to the right where they bring context.

use std::fmt::Write as _;

use super::{Edge, EdgeKind, Graph, GraphNode, NodeKind};

/// Pixels of a character at 13 and at 11 pixels (measured on the widest of three common sans serifs).
const WIDE: f64 = 7.6;
const NARROW: f64 = 6.3;
const LINE: f64 = 16.0;
const PADDING: f64 = 12.0;
const BETWEEN: f64 = 28.0;
/// Height of a gap without turns, and what each turn adds.
const GAP: f64 = 34.0;
const TURN: f64 = 9.0;
const LANE: f64 = 12.0;
const MARGIN: f64 = 20.0;
const TITLE: f64 = 34.0;

/// Draws a cascade, dark where the reader's screen is.
pub fn svg(graph: &Graph) -> String {
    let layout = Layout::of(graph);
    let mut out = String::new();
    let (width, height) = (layout.width, layout.height);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\n{STYLE}",
        escaped(&format!("Cascade {}", graph.title)),
    );
    let _ = writeln!(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>");
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
        MARGIN + 4.0,
        escaped(&graph.title)
    );
    for (edge, path) in graph.edges.iter().zip(&layout.paths) {
        draw_edge(&mut out, edge, path);
    }
    for (node, place) in graph.nodes.iter().zip(&layout.places) {
        draw_node(&mut out, node, place);
    }
    legend(&mut out, graph, height);
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "<style>
svg { --page: #ffffff; --ink: #1b2430; --soft: #5b6675; --box: #f4f6f9; --line: #9aa6b5; --flow: #44546a; --sees: #0b7a75; --injects: #b4552d; }
@media (prefers-color-scheme: dark) { svg { --page: #12161c; --ink: #e8ecf1; --soft: #9aa6b5; --box: #1d242d; --line: #4a5665; --flow: #a9b6c6; --sees: #4fc3bd; --injects: #e8935f; } }
text { font-family: system-ui, -apple-system, 'Segoe UI', sans-serif; font-size: 11px; fill: var(--soft); }
.page { fill: var(--page); }
.title { font-size: 15px; font-weight: 600; fill: var(--ink); }
.name { font-size: 13px; font-weight: 600; fill: var(--ink); }
.box { fill: var(--box); stroke: var(--line); }
.tool { stroke-width: 2.5; }
.sub { stroke-dasharray: 2 3; }
path { fill: none; stroke-width: 1.5; }
.flow { stroke: var(--flow); } .sees { stroke: var(--sees); stroke-dasharray: 6 4; } .injects { stroke: var(--injects); stroke-dasharray: 2 3; } .runs { stroke: var(--line); }
.head-flow { fill: var(--flow); } .head-sees { fill: var(--sees); } .head-injects { fill: var(--injects); }
.label { paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
.label-sees { fill: var(--sees); } .label-injects { fill: var(--injects); }
</style>
";

#[derive(Debug, Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The corners of an edge, and where its label begins.
struct Path {
    corners: Vec<(f64, f64)>,
    label: (f64, f64),
    label_ends: bool,
}

struct Layout {
    places: Vec<Place>,
    paths: Vec<Path>,
    width: f64,
    height: f64,
}

impl Layout {
    fn of(graph: &Graph) -> Self {
        let layers = layers(graph);
        let count = layers.iter().max().map_or(0, |last| last + 1);
        let lanes: Vec<Lane> = graph.edges.iter().map(|edge| lane(edge, &layers)).collect();
        let left = lanes.iter().filter(|lane| **lane == Lane::Left).count();
        let right = lanes.iter().filter(|lane| **lane == Lane::Right).count();
        let widths: Vec<f64> = (0..count)
            .map(|layer| {
                let inside = graph.nodes.iter().zip(&layers).filter(|(_, of)| **of == layer);
                inside.map(|(node, _)| width(node) + BETWEEN).sum::<f64>() - BETWEEN
            })
            .collect();
        let widest = widths.iter().copied().fold(200.0, f64::max);
        let labels = longest_label(graph, &lanes);
        let start = MARGIN + left as f64 * LANE + if left > 0 { 10.0 + labels.0 } else { 0.0 };

        // The turns of each gap: below layer n, counted from the gap above the first layer.
        let mut turns = vec![0_usize; count + 1];
        for (edge, lane) in graph.edges.iter().zip(&lanes) {
            if matches!(lane, Lane::Left | Lane::Right) {
                turns[layers[edge.from] + 1] += 1;
                turns[layers[edge.to]] += 1;
            }
        }
        let mut places = vec![Place { x: 0.0, y: 0.0, width: 0.0, height: 0.0 }; graph.nodes.len()];
        let mut gap_tops = Vec::with_capacity(count + 1);
        let mut y = MARGIN + TITLE - 14.0;
        for layer in 0..count {
            gap_tops.push(y);
            y += turns[layer] as f64 * TURN + if layer == 0 { 8.0 } else { GAP };
            let mut x = start + (widest - widths[layer]) / 2.0;
            let mut tallest: f64 = 0.0;
            for (index, node) in
                graph.nodes.iter().enumerate().filter(|(index, _)| layers[*index] == layer)
            {
                let place = Place { x, y, width: width(node), height: height(node) };
                x += place.width + BETWEEN;
                tallest = tallest.max(place.height);
                places[index] = place;
            }
            y += tallest;
        }
        gap_tops.push(y);
        y += turns[count] as f64 * TURN + 14.0;
        let paths = paths(graph, &layers, &lanes, &places, &gap_tops, start, start + widest);
        let side = if right > 0 { right as f64 * LANE + 10.0 + labels.1 } else { 0.0 };
        let width = (start + widest + side + MARGIN).max(360.0);
        Self { places, paths, width, height: y + 30.0 }
    }
}

/// The course of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Straight down to the next layer.
    Down,
    /// To a node beside it.
    Beside,
    Left,
    Right,
}

fn lane(edge: &Edge, layers: &[usize]) -> Lane {
    match edge.kind {
        EdgeKind::Runs => Lane::Beside,
        _ if layers[edge.to] == layers[edge.from] + 1 => Lane::Down,
        EdgeKind::Next | EdgeKind::Handoff => Lane::Left,
        EdgeKind::Context | EdgeKind::Inject => Lane::Right,
    }
}

/// Puts each phase below all that lead on to it, and cascades beside their phase.
fn layers(graph: &Graph) -> Vec<usize> {
    let mut layers = vec![0; graph.nodes.len()];
    for to in 0..graph.nodes.len() {
        if graph.nodes[to].kind == NodeKind::SubCascade {
            continue;
        }
        let before = graph.edges.iter().filter(|edge| {
            edge.to == to
                && edge.from < to
                && matches!(edge.kind, EdgeKind::Next | EdgeKind::Handoff)
        });
        let lowest = before.map(|edge| layers[edge.from] + 1).max();
        // A node without incoming edges stands below the one before it in the file.
        layers[to] = lowest.unwrap_or(if to == 0 { 0 } else { layers[to - 1] + 1 });
    }
    for edge in graph.edges.iter().filter(|edge| edge.kind == EdgeKind::Runs) {
        layers[edge.to] = layers[edge.from];
    }
    layers
}

fn width(node: &GraphNode) -> f64 {
    let name = node.name.chars().count() as f64 * WIDE;
    let lines = node.lines.iter().map(|line| line.chars().count() as f64 * NARROW);
    lines.fold(name, f64::max).max(90.0) + 2.0 * PADDING
}

fn height(node: &GraphNode) -> f64 {
    (1 + node.lines.len()) as f64 * LINE + 2.0 * PADDING - 4.0
}

/// Returns the widths of the longest labels on the left and on the right.
fn longest_label(graph: &Graph, lanes: &[Lane]) -> (f64, f64) {
    let longest = |lane: Lane| {
        let labels = graph.edges.iter().zip(lanes).filter(|(_, of)| **of == lane);
        let widths = labels.filter_map(|(edge, _)| edge.label.as_ref());
        widths.map(|label| label.chars().count() as f64 * NARROW + 6.0).fold(0.0, f64::max)
    };
    (longest(Lane::Left), longest(Lane::Right))
}

/// Returns the places at which edges meet each node: apart from each other, those of the left first.
struct Ports {
    total: Vec<usize>,
    used: Vec<usize>,
}

impl Ports {
    fn next(&mut self, node: usize, place: &Place) -> f64 {
        self.used[node] += 1;
        let (used, total) = (self.used[node] as f64, self.total[node] as f64);
        place.x + place.width * used / (total + 1.0)
    }
}

fn paths(
    graph: &Graph,
    layers: &[usize],
    lanes: &[Lane],
    places: &[Place],
    gap_tops: &[f64],
    start: f64,
    end: f64,
) -> Vec<Path> {
    let counted = |of: fn(&Edge) -> usize| {
        let mut total = vec![0; graph.nodes.len()];
        for edge in graph.edges.iter().filter(|edge| edge.kind != EdgeKind::Runs) {
            total[of(edge)] += 1;
        }
        Ports { total, used: vec![0; graph.nodes.len()] }
    };
    let (mut leaving, mut arriving) = (counted(|edge| edge.from), counted(|edge| edge.to));
    let mut turns = vec![0_usize; gap_tops.len()];
    let (mut left, mut right) = (0, 0);
    let mut order: Vec<usize> = (0..graph.edges.len()).collect();
    // Lanes keep to their side of a node, so that no two cross there.
    order.sort_by_key(|index| match lanes[*index] {
        Lane::Left => 0,
        Lane::Down => 1,
        Lane::Beside => 2,
        Lane::Right => 3,
    });
    let mut paths: Vec<Option<Path>> = graph.edges.iter().map(|_| None).collect();
    for index in order {
        let edge = &graph.edges[index];
        let (from, to) = (&places[edge.from], &places[edge.to]);
        let path = match lanes[index] {
            Lane::Beside => {
                let y = from.y + 20.0;
                Path {
                    corners: vec![(from.x + from.width, y), (to.x, y)],
                    label: (to.x, y),
                    label_ends: false,
                }
            }
            Lane::Down => {
                let (a, b) = (leaving.next(edge.from, from), arriving.next(edge.to, to));
                // A nearly straight edge is drawn straight.
                let a = if (a - b).abs() < 16.0 { b } else { a };
                let (top, bottom) = (from.y + from.height, to.y);
                let middle = bottom - 16.0;
                Path {
                    corners: vec![(a, top), (a, middle), (b, middle), (b, bottom)],
                    label: (b + 5.0, bottom - 6.0),
                    label_ends: false,
                }
            }
            side => {
                let (a, b) = (leaving.next(edge.from, from), arriving.next(edge.to, to));
                // Beside the lines that go straight down from the same place.
                let (a, b) = (a + 6.0, b + 6.0);
                let below = layers[edge.from] + 1;
                let above = layers[edge.to];
                turns[below] += 1;
                let out = gap_tops[below] + 4.0 + turns[below] as f64 * TURN;
                turns[above] += 1;
                let back = gap_tops[above] + 4.0 + turns[above] as f64 * TURN;
                let x = if side == Lane::Left {
                    left += 1;
                    start - 10.0 - f64::from(left) * LANE
                } else {
                    right += 1;
                    end + 10.0 + f64::from(right) * LANE
                };
                // Above the last turn, on the inner side of the lane.
                let label_ends = side == Lane::Right;
                let label = (if label_ends { x - 8.0 } else { x + 8.0 }, back - 3.0);
                let foot = from.y + from.height;
                Path {
                    corners: vec![(a, foot), (a, out), (x, out), (x, back), (b, back), (b, to.y)],
                    label,
                    label_ends,
                }
            }
        };
        paths[index] = Some(path);
    }
    paths.into_iter().flatten().collect()
}

fn draw_edge(out: &mut String, edge: &Edge, path: &Path) {
    let class = match edge.kind {
        EdgeKind::Next | EdgeKind::Handoff => "flow",
        EdgeKind::Context => "sees",
        EdgeKind::Inject => "injects",
        EdgeKind::Runs => "runs",
    };
    let _ = writeln!(out, "<path class=\"{class}\" d=\"{}\"/>", rounded(&path.corners));
    if edge.kind != EdgeKind::Runs
        && let Some((x, y)) = path.corners.last()
    {
        let _ = writeln!(
            out,
            "<polygon class=\"head-{class}\" points=\"{:.1},{:.1} {:.1},{:.1} {x:.1},{y:.1}\"/>",
            x - 4.0,
            y - 7.0,
            x + 4.0,
            y - 7.0
        );
    }
    if let Some(label) = &edge.label {
        let (x, y) = path.label;
        let anchor = if path.label_ends { "end" } else { "start" };
        let _ = writeln!(
            out,
            "<text class=\"label label-{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(label)
        );
    }
}

/// Writes a line through corners, each rounded as far as its sides allow.
fn rounded(corners: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let last = corners.len().saturating_sub(1);
    for (index, (x, y)) in corners.iter().enumerate() {
        if index == 0 {
            let _ = write!(path, "M{x:.1} {y:.1}");
        } else if index == last {
            let _ = write!(path, " L{x:.1} {y:.1}");
        } else {
            let (before, after) = (corners[index - 1], corners[index + 1]);
            let reach = |to: (f64, f64)| (to.0 - x).hypot(to.1 - y);
            let radius = 5.0_f64.min(reach(before) / 2.0).min(reach(after) / 2.0);
            let towards = |to: (f64, f64)| {
                let share = if reach(to) > 0.0 { radius / reach(to) } else { 0.0 };
                (x + (to.0 - x) * share, y + (to.1 - y) * share)
            };
            let (a, b) = (towards(before), towards(after));
            let _ = write!(path, " L{:.1} {:.1} Q{x:.1} {y:.1} {:.1} {:.1}", a.0, a.1, b.0, b.1);
        }
    }
    path
}

fn draw_node(out: &mut String, node: &GraphNode, place: &Place) {
    let (class, radius) = match node.kind {
        NodeKind::Model => ("box", 8.0),
        NodeKind::Tool => ("box tool", 2.0),
        NodeKind::SubCascade => ("box sub", 8.0),
    };
    let Place { x, y, width, height } = place;
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"/>"
    );
    let centre = x + width / 2.0;
    let mut line = y + PADDING + 9.0;
    let _ = writeln!(
        out,
        "<text class=\"name\" x=\"{centre:.1}\" y=\"{line:.1}\" text-anchor=\"middle\">{}</text>",
        escaped(&node.name)
    );
    for text in &node.lines {
        line += LINE;
        let _ = writeln!(
            out,
            "<text x=\"{centre:.1}\" y=\"{line:.1}\" text-anchor=\"middle\">{}</text>",
            escaped(text)
        );
    }
}

/// Says what the lines mean that there are.
fn legend(out: &mut String, graph: &Graph, height: f64) {
    let mut x = MARGIN;
    let y = height - 14.0;
    for (kinds, class, word) in [
        (&[EdgeKind::Next, EdgeKind::Handoff][..], "flow", "leads to"),
        (&[EdgeKind::Context][..], "sees", "is seen by"),
        (&[EdgeKind::Inject][..], "injects", "is injected into"),
    ] {
        if graph.edges.iter().any(|edge| kinds.contains(&edge.kind)) {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"M{x:.1} {:.1} h22\"/>", y - 4.0);
            let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">{word}</text>", x + 27.0);
            x += 45.0 + word.chars().count() as f64 * NARROW;
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
