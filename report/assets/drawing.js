// The drawing of one Service in one stage.
function draw() {
  const service = document.getElementById("service").value;
  const stage = currentStage();
  const { columns, lines, height } = layout(service, stage);
  const label = `Paths to Service ${service}, ${data.stages[stage].label}. The table below has the same content.`;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": label });
  for (const [key, title] of [["from", "From"], ["way", "Way in"], ["end", "Source address on arrival"]]) {
    svg.append(shape("text", { class: "column", x: COLUMNS[key].x + 2, y: 18 }, title));
  }
  svg.append(...lines.map(line), ...Object.entries(columns).flatMap(([key, boxes]) => boxes.map((each) => box(COLUMNS[key], each))));
  document.getElementById("canvas").replaceChildren(svg);
}

// A line from the source through the way in to the address that arrives: a button.
function line({ path, number, journey, fromY, wayY, endY }) {
  const { from, way, end } = COLUMNS;
  const [x1, x2, x3, x4] = [from.x + from.width, way.x, way.x + way.width, end.x - 12];
  const bend = (a, ya, b, yb) => `C ${(a + b) / 2} ${ya} ${(a + b) / 2} ${yb} ${b} ${yb}`;
  const d = `M ${x1} ${fromY} ${bend(x1, fromY, x2, wayY)} L ${x3} ${wayY} ${bend(x3, wayY, x4, endY)}`;
  const arrives = journey.arrives ? `, ${journey.arrives} arrives` : "";
  const label = `${path.from.label} to ${path.to.label}: ${outcome(journey.outcome).label}${arrives}. Open the trace.`;
  const button = shape("g", { class: `path ${journey.outcome}`, role: "button", tabindex: "0", "aria-label": label, "data-path": number },
    shape("title", {}, label),
    shape("path", { class: "reach", d }),
    shape("path", { class: "run", d }),
    glyph(journey.outcome, x4, endY));
  return pressable(button, () => showTrace(number));
}

// The end of a line has a shape for each outcome.
function glyph(key, x, y) {
  const d = {
    preserved: `M ${x - 5} ${y} a 5 5 0 1 0 10 0 a 5 5 0 1 0 -10 0`,
    lost: `M ${x - 5} ${y - 5} l 10 10 m 0 -10 l -10 10`,
    dropped: `M ${x - 5} ${y - 5} h 10 v 10 h -10 z`,
    unreachable: `M ${x} ${y - 6} l 6 11 h -12 z`,
    unclear: `M ${x} ${y - 6} l 6 6 l -6 6 l -6 -6 z`,
  }[key];
  return shape("path", { class: "glyph", d });
}

function box({ x, width }, { y, height, title, note, rows, set, outcome: key }) {
  const characters = Math.floor((width - 28) / 7.4);
  const group = shape("g", { class: key ? `end ${key}` : "still" },
    shape("rect", { class: "box", x: x + 1, y, width: width - 2, height, rx: 8 }));
  if (key) group.append(shape("path", { class: "band", d: band(x + 2, y + 1, width - 4, HEAD - 2, 7) }));
  const room = Math.floor((width - (note ? 40 : 26) - note.length * 7) / 8.3);
  group.append(shape("text", { class: "head", x: x + 14, y: y + 22 }, shorten(title, room), shape("title", {}, title)));
  if (note) group.append(shape("text", { class: "small", x: x + width - 14, y: y + 22, "text-anchor": "end" }, note));
  for (const row of rows.values()) {
    const middle = row.y + row.height / 2;
    group.append(shape("path", { class: "rule", d: `M ${x + 1} ${row.y} h ${width - 2}` }));
    group.append(shape("text", { x: x + 14, y: middle + (row.note ? -3 : 5) }, shorten(row.title, characters), shape("title", {}, row.title)));
    if (row.note) {
      group.append(shape("text", { class: "small", x: x + 14, y: middle + 14 }, shorten(row.note, Math.floor((width - 28) / 6.6)), shape("title", {}, row.note)));
    }
  }
  if (set === undefined) return group;
  fill(group, { class: "nodes", role: "button", tabindex: "0", "aria-label": `${title}, ${note}: show the nodes` }, []);
  return pressable(group, () => showNodes(set));
}

// A rectangle with round upper corners.
function band(x, y, width, height, r) {
  return `M ${x} ${y + height} v ${r - height} q 0 ${-r} ${r} ${-r} h ${width - 2 * r} q ${r} 0 ${r} ${r} v ${height - r} z`;
}

// Groups of shapes are no buttons by themselves.
function pressable(group, act) {
  group.addEventListener("click", act);
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return group;
}
