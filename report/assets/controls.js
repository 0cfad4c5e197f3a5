// Everything that the reader can set.
const currentStage = () => Number(document.querySelector('input[name="stage"]:checked')?.value ?? 0);

function start() {
  const theme = document.getElementById("theme");
  const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
  const panel = document.getElementById("panel");
  // A click beside the panel hits the dialog itself, not one of its children.
  panel.addEventListener("click", (event) => {
    if (event.target === panel && event.offsetX < 0) panel.close();
  });
  show(document);
  follow();
}

// Takes the data of a document, and makes the body's content work.
function show(source) {
  data = JSON.parse(source.getElementById("data").textContent);
  for (const each of document.querySelectorAll(".script")) each.hidden = false;
  for (const button of document.querySelectorAll("button.trace")) {
    button.addEventListener("click", () => showTrace(Number(button.dataset.path)));
  }
  if (!document.getElementById("drawing")) return;
  document.getElementById("service").addEventListener("change", draw);
  for (const radio of document.querySelectorAll('input[name="stage"]')) radio.addEventListener("change", draw);
  draw();
}
