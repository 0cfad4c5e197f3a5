// Elements. Text from the cluster only ever becomes a text node.
const SVG = "http://www.w3.org/2000/svg";
let data;

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const child of children.flat()) {
    if (child !== null) made.append(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
  return made;
}

const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const shape = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const outcome = (key) => data.outcomes.find((each) => each.key === key);
const shorten = (text, length) => (text.length > length ? text.slice(0, length - 1) + "\u2026" : text);

function badge(key) {
  const { label, mark } = outcome(key);
  return element("span", { class: `badge ${key}` }, element("span", { class: "mark", "aria-hidden": "true" }, mark), label);
}

function nodeOf(name) {
  return data.nodes.find((node) => node.name === name);
}

// `work-1`, `480 nodes of pool default`.
function nodesLabel(names) {
  return names.length === 1 ? names[0] : `${names.length} nodes of pool ${nodeOf(names[0])?.pool ?? "?"}`;
}
