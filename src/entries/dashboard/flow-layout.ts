/** A node to place: what it is called, and what comes before it. */
export interface NodeToPlace {
  readonly key: string;
  readonly after: readonly string[];
}

export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Where the nodes of a graph stand, and how large it is. */
export interface Layout {
  readonly places: ReadonlyMap<string, Place>;
  readonly width: number;
  readonly height: number;
}

/** Of a node, and the room beside and below it. */
export const NODE = { width: 208, height: 62, across: 72, down: 16 } as const;

/** Layers with more nodes begin at the top, so that the begin of a graph is seen without scrolling. */
const CENTRED = 8;

/**
 * Places nodes in layers from left to right: each in the layer after the last one of those before it. In a
 * layer they stand near to what comes before them, so that fewer lines cross.
 */
export function layoutOf(nodes: readonly NodeToPlace[]): Layout {
  const layers = layersOf(nodes);
  const most = Math.max(1, ...layers.map(({ length }) => length));
  const [stepX, stepY] = [NODE.width + NODE.across, NODE.height + NODE.down];
  const rows = new Map<string, number>();
  for (const [index, layer] of layers.entries()) {
    const near = ({ after }: NodeToPlace) => {
      const known = after.flatMap((key) => rows.get(key) ?? []);
      return known.length === 0 ? 0 : known.reduce((sum, row) => sum + row, 0) / known.length;
    };
    const sorted = index === 0 ? layer : layer.toSorted((a, b) => near(a) - near(b));
    const first = Math.max(0, (Math.min(most, CENTRED) - layer.length) / 2);
    for (const [at, { key }] of sorted.entries()) rows.set(key, first + at);
  }
  const places = layers.flatMap((layer, at) =>
    layer.map(({ key }): [string, Place] => [key, { x: at * stepX, y: (rows.get(key) ?? 0) * stepY }]),
  );
  return {
    places: new Map(places),
    width: Math.max(1, layers.length) * stepX - NODE.across,
    height: most * stepY - NODE.down,
  };
}

/** Nodes come after what is before them; others, of rows that were written by hand, count as first. */
function layersOf(nodes: readonly NodeToPlace[]): NodeToPlace[][] {
  const depths = new Map<string, number>();
  const layers: NodeToPlace[][] = [];
  for (const node of nodes) {
    const depth = Math.max(0, ...node.after.map((key) => (depths.get(key) ?? -1) + 1));
    depths.set(node.key, depth);
    const layer = layers[depth] ?? [];
    layer.push(node);
    layers[depth] = layer;
  }
  return layers;
}

/** A line from the right side of one node to the left side of another, for the `d` of a path. */
export function lineOf(from: Place, to: Place): string {
  const [x, y] = [from.x + NODE.width, from.y + NODE.height / 2];
  const bend = Math.max(NODE.across / 2, (to.x - x) / 2);
  const end = to.y + NODE.height / 2;
  return `M${x} ${y}C${x + bend} ${y} ${to.x - bend} ${end} ${to.x} ${end}`;
}
