// The panel with the trace of a path, or with the nodes of a group.
function showTrace(number) {
  const path = data.paths[number];
  const several = [data.sets[path.from.set], data.sets[path.to.set]].filter((names) => names.length > 1);
  const parts = path.journeys.flatMap((journey, stage) => [
    element("h3", {}, data.stages[stage].label),
    element("p", {}, badge(journey.outcome)),
    element("p", {}, journey.line),
    journey.hops.length ? element("ol", { class: "hops" }, journey.hops.map(hop)) : element("p", { class: "line" }, "No hop acts on the packet."),
  ]);
  const note = several.length ? element("p", { class: "line" }, `Shown for ${exampleOf(several)}; the others behave alike.`) : null;
  open(`${path.from.label} to ${path.to.label}`, element("p", { class: "line" }, `Service ${path.service}`), note, parts);
}

const exampleOf = (sets) => sets.map((names) => names[0]).filter((name, number, all) => all.indexOf(name) === number).join(" and ");

function hop({ place, actor, reason, before, after, rules = [], assumed }) {
  const change = (name, old, now) => [
    element("dt", {}, name),
    element("dd", {}, old === now ? old : [`${old} \u2192 `, element("span", { class: name === "source" ? "changed" : "" }, now)]),
  ];
  return element("li", { class: before.source === after.source ? "" : "changes" },
    element("strong", {}, place), ` \u00b7 ${actor}`, assumed ? element("em", { class: "line" }, "assumed") : null,
    element("span", { class: "line" }, reason),
    element("dl", { class: "flow" }, change("source", before.source, after.source), change("destination", before.destination, after.destination)),
    rules.length ? element("ul", { class: "rules" }, rules.map((rule) => element("li", {}, element("code", {}, rule)))) : null);
}

function showNodes(set) {
  const names = data.sets[set];
  const describe = (name) => {
    const node = nodeOf(name);
    return element("li", {}, name, element("span", { class: "address" }, ` ${node?.addresses[0] ?? ""}`), node && !node.ready ? " (not ready)" : "");
  };
  open(nodesLabel(names), element("p", { class: "line" }, roleOf(names[0])), element("ul", { class: "names" }, names.map(describe)));
}

// A dialog gives the focus back by itself when it closes.
function open(title, ...parts) {
  const panel = document.getElementById("panel");
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", () => panel.close());
  const head = element("header", {}, element("h2", { id: "panel-title" }, title), close);
  panel.replaceChildren(...[head, parts].flat(3).filter((part) => part !== null));
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
}
