// Where boxes, rows and lines are. Each line has a slot of its own in each row that it touches.
const COLUMNS = { from: { x: 0, width: 320 }, way: { x: 460, width: 310 }, end: { x: 910, width: 290 } };
const WIDTH = 1200;
const SLOT = 9;
const HEAD = 34;
const TOP = 30;
const GAP = 18;
const MOST_ROWS = 10;

// Boxes of one column, in order of appearance. A box has rows, a row has lines.
function column() {
  const boxes = new Map();
  return {
    add(boxKey, box, rowKey, row, line) {
      if (!boxes.has(boxKey)) boxes.set(boxKey, { ...box, rows: new Map() });
      const rows = boxes.get(boxKey).rows;
      if (!rows.has(rowKey)) rows.set(rowKey, { ...row, lines: [] });
      rows.get(rowKey).lines.push(line);
      return rows.get(rowKey);
    },
    boxes: () => [...boxes.values()],
  };
}

function sourceOf(path) {
  const names = data.sets[path.from.set];
  const box = path.from.kind === "outside"
    ? { key: "outside", title: "Outside the cluster", note: "" }
    : { key: `nodes ${path.from.set}`, title: boxTitle(names), note: roleOf(names[0]), set: path.from.set };
  const title = { outside: "Client", pod: "Pod", host: "Host process" }[path.from.kind];
  const note = names.length > 1 ? `${path.from.address}, for example` : path.from.address;
  return { box, row: { title, note } };
}

// `work-1`, `default: 480 nodes`.
const boxTitle = (names) => (names.length === 1 ? names[0] : `${nodeOf(names[0])?.pool ?? "?"}: ${names.length} nodes`);

function roleOf(name) {
  const node = nodeOf(name);
  const role = { ingress: "ingress", "non-ingress": "non-ingress", agentless: "non-ingress, no agent" }[node?.role] ?? "";
  return node && !node.ready ? "not ready" : role;
}

function wayOf(path) {
  const names = data.sets[path.to.set];
  const kind = { "cluster-ip": "ClusterIP", external: "External", "node-port": "NodePort" }[path.to.kind];
  const port = path.to.address.slice(path.to.address.lastIndexOf(":") + 1);
  const of = names.length ? nodesLabel(names) : "";
  if (path.to.kind === "external") return { title: `${kind} ${path.to.address}`, note: of ? `enters at ${of}` : "from inside the cluster" };
  if (path.to.kind === "node-port" && of) return { title: `${kind} ${port}`, note: `of ${of}` };
  const [address, ...rest] = path.to.address.split(" ");
  return { title: `${kind} ${address}`, note: rest.join(" ") };
}

function layout(service, stage) {
  const [from, way, end] = [column(), column(), column()];
  const numbered = data.paths.map((path, number) => ({ path, number }));
  const shown = numbered.filter(({ path }) => path.service === service && path.journeys[stage]);
  const arrivals = (key) => new Set(shown.filter(({ path }) => path.journeys[stage].outcome === key)
    .map(({ path }) => path.journeys[stage].arrives ?? ""));
  const lines = shown.map(({ path, number }) => {
    const journey = path.journeys[stage];
    const line = { path, number, journey };
    const source = sourceOf(path);
    line.from = from.add(source.box.key, source.box, `${path.from.kind} ${path.from.address}`, source.row, line);
    const row = wayOf(path);
    line.way = way.add("service", { title: service, note: "" }, `${row.title} ${row.note}`, row, line);
    const many = arrivals(journey.outcome).size > MOST_ROWS;
    const arrives = many ? `${arrivals(journey.outcome).size} different addresses` : journey.arrives;
    const { label, mark } = outcome(journey.outcome);
    const title = arrives ?? { dropped: "no answer", unreachable: "no answer", unclear: "cannot be told" }[journey.outcome] ?? "";
    line.end = end.add(journey.outcome, { title: `${mark}  ${label}`, note: "", outcome: journey.outcome }, title, { title, note: "" }, line);
    return line;
  });
  const columns = { from: from.boxes(), way: way.boxes(), end: end.boxes() };
  columns.end.sort((a, b) => order(a.outcome) - order(b.outcome));
  const heights = Object.values(columns).map(place);
  const height = Math.max(...heights);
  Object.values(columns).forEach((boxes, number) => move(boxes, TOP + (height - heights[number]) / 2));
  slots(columns);
  return { columns, lines, height: height + TOP + 4 };
}

const order = (key) => data.outcomes.findIndex((each) => each.key === key);

// Gives rows their places from the top, and returns the height of the column.
function place(boxes) {
  let y = 0;
  for (const box of boxes) {
    box.y = y;
    y += HEAD;
    for (const row of box.rows.values()) {
      row.y = y;
      row.height = Math.max(row.note ? 46 : 32, row.lines.length * SLOT + 12);
      y += row.height;
    }
    box.height = y - box.y;
    y += GAP;
  }
  return y - GAP;
}

function move(boxes, by) {
  for (const box of boxes) {
    box.y += by;
    for (const row of box.rows.values()) row.y += by;
  }
}

// Lines leave a row in the order in which they arrive elsewhere, so that few of them cross.
function slots(columns) {
  const rows = (boxes) => boxes.flatMap((box) => [...box.rows.values()]);
  const assign = (boxes, name, by) => {
    for (const row of rows(boxes)) {
      row.lines.sort(by);
      row.lines.forEach((line, number) => {
        line[name] = row.y + row.height / 2 + (number - (row.lines.length - 1) / 2) * SLOT;
      });
    }
  };
  assign(columns.from, "fromY", (a, b) => a.way.y - b.way.y || a.end.y - b.end.y);
  assign(columns.way, "wayY", (a, b) => a.fromY - b.fromY);
  assign(columns.end, "endY", (a, b) => a.wayY - b.wayY);
}
